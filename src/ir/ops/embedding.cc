// embedding: token[T] i32, table[V,M] -> [T,M]; out[t] = table[token[t]].
// The table has any stored type; its rows are widened to f32. Token ids must
// lie in 0..V-1: whoever feeds the graph checks that.
#include <algorithm>

#include "base/check.h"
#include "ir/axes.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferEmbedding(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"token", "T", Elem::kIndex},
                                    {"table", "VM", Elem::kStored}};
  HX_ASSIGN_OR_RETURN(const Axes axes, MatchInputs(context, kInputs));
  return axes.Activation("TM");
}

HostTensor InterpretEmbedding(const OpContext&,
                              std::span<const HostTensor* const> inputs,
                              const TensorType& output) {
  const HostTensor& table = *inputs[1];
  const int64_t rows = table.type.shape[0];
  const int64_t width = table.type.shape[1];
  HostTensor out{.type = output};
  for (const int64_t token : inputs[0]->ints) {
    HX_CHECK(token >= 0 && token < rows);
    const auto row = table.floats.begin() + token * width;
    out.floats.insert(out.floats.end(), row, row + width);
  }
  return out;
}

}  // namespace hexllm::ir

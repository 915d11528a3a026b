// add: a, and b of the same shape or of a's last axes -> a's shape; a + b. A
// smaller b is added to every part of a that has its shape: mask[T,C] to
// scores[G,R,T,C].
#include <algorithm>

#include "ir/ops/elementwise.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferAdd(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"a", "."}, {"b", "."}};
  HX_RETURN_IF_ERROR(MatchInputs(context, kInputs).status());
  const Shape& a = context.inputs[0]->shape;
  const Shape& b = context.inputs[1]->shape;
  if (b.size() > a.size() || !std::equal(b.rbegin(), b.rend(), a.rbegin())) {
    return Error{ErrorCode::kBadInput, "b: expected " +
                                           TypeToString(*context.inputs[0]) +
                                           " as a or its last axes, found " +
                                           TypeToString(*context.inputs[1])};
  }
  return *context.inputs[0];
}

HostTensor InterpretAdd(const OpContext&,
                        std::span<const HostTensor* const> inputs,
                        const TensorType& output) {
  const std::vector<float>& b = inputs[1]->floats;
  HostTensor out{.type = output, .floats = inputs[0]->floats};
  for (size_t i = 0; i < out.floats.size(); ++i)
    out.floats[i] = out.floats[i] + b[i % b.size()];
  return out;
}

}  // namespace hexllm::ir

// convert: x of any shape -> the same. Does nothing by itself: its output can
// have another encoding than its input.
#include "ir/ops/elementwise.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferConvert(const OpContext& context) {
  return InferUnary(context);
}

HostTensor InterpretConvert(const OpContext&,
                            std::span<const HostTensor* const> inputs,
                            const TensorType&) {
  return *inputs[0];
}

}  // namespace hexllm::ir

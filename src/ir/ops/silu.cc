// silu: x -> the same shape; x * sigmoid(x). See ir/ops/activation.h.
#include "ir/ops/activation.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferSilu(const OpContext& context) {
  return InferUnary(context);
}

HostTensor InterpretSilu(const OpContext&,
                         std::span<const HostTensor* const> inputs,
                         const TensorType& output) {
  return MapElements(*inputs[0], output, Silu);
}

}  // namespace hexllm::ir

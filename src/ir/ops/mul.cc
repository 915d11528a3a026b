// mul: a, b of one shape -> that shape; a * b.
#include "ir/ops/elementwise.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferMul(const OpContext& context) {
  return InferBinary(context);
}

HostTensor InterpretMul(const OpContext&,
                        std::span<const HostTensor* const> inputs,
                        const TensorType&) {
  return MapPairs(*inputs[0], *inputs[1],
                  [](double a, double b) { return a * b; });
}

}  // namespace hexllm::ir

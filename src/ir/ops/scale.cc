// scale: x {factor} -> the same shape; x * factor, the factor rounded to f32.
#include "ir/ops/elementwise.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferScale(const OpContext& context) {
  return InferUnary(context);
}

HostTensor InterpretScale(const OpContext& context,
                          std::span<const HostTensor* const> inputs,
                          const TensorType& output) {
  const auto factor = static_cast<double>(
      static_cast<float>(FloatAttr(context.attrs, AttrName::kFactor)));
  return MapElements(*inputs[0], output,
                     [factor](double x) { return x * factor; });
}

}  // namespace hexllm::ir

// gelu: x {approximate} -> the same shape; 1 = tanh form, 0 = erf form. See
// ir/ops/activation.h.
#include "ir/ops/activation.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferGelu(const OpContext& context) {
  const int64_t approximate = IntAttr(context.attrs, AttrName::kApproximate);
  if (approximate != 0 && approximate != 1) {
    return Error{ErrorCode::kBadInput,
                 "attribute approximate: expected 0 (erf) or 1 (tanh), found " +
                     std::to_string(approximate)};
  }
  return InferUnary(context);
}

HostTensor InterpretGelu(const OpContext& context,
                         std::span<const HostTensor* const> inputs,
                         const TensorType& output) {
  const bool tanh_form = IntAttr(context.attrs, AttrName::kApproximate) == 1;
  return MapElements(*inputs[0], output, tanh_form ? GeluTanh : GeluErf);
}

}  // namespace hexllm::ir

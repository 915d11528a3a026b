// softcap: x {cap} -> the same shape; cap * tanh(x / cap), cap > 0 (Gemma 2
// report, 2024: logit soft-capping).
#include <cmath>

#include "ir/ops/elementwise.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferSoftcap(const OpContext& context) {
  if (FloatAttr(context.attrs, AttrName::kCap) <= 0) {
    return Error{ErrorCode::kBadInput,
                 "attribute cap: expected more than 0, found 0 or less"};
  }
  return InferUnary(context);
}

HostTensor InterpretSoftcap(const OpContext& context,
                            std::span<const HostTensor* const> inputs,
                            const TensorType& output) {
  const double cap = FloatAttr(context.attrs, AttrName::kCap);
  return MapElements(*inputs[0], output,
                     [cap](double x) { return cap * std::tanh(x / cap); });
}

}  // namespace hexllm::ir

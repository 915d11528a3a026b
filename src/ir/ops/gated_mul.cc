// gated_mul: gate, up of one shape {activation} -> that shape.
//
//   out = act(gate) * up        act: 0 silu, 1 gelu tanh, 2 gelu erf
//
// Exactly the two ops it replaces: act(gate) is rounded to f32 before the
// product. Made by passes/fuse_gated_mul.
#include "ir/ops/activation.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferGatedMul(const OpContext& context) {
  const int64_t activation = IntAttr(context.attrs, AttrName::kActivation);
  if (activation < 0 || activation > 2) {
    return Error{ErrorCode::kBadInput,
                 "attribute activation: expected 0 (silu), 1 (gelu tanh) or 2 "
                 "(gelu erf), found " +
                     std::to_string(activation)};
  }
  return InferBinary(context);
}

HostTensor InterpretGatedMul(const OpContext& context,
                             std::span<const HostTensor* const> inputs,
                             const TensorType& output) {
  constexpr double (*kActivations[])(double) = {Silu, GeluTanh, GeluErf};
  const auto activation =
      static_cast<size_t>(IntAttr(context.attrs, AttrName::kActivation));
  const HostTensor gate =
      MapElements(*inputs[0], output, kActivations[activation]);
  return MapPairs(gate, *inputs[1], [](double a, double b) { return a * b; });
}

}  // namespace hexllm::ir

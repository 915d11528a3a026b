// linear_add: x[T,K], w[N,K], residual[T,N], bias[N]? -> [T,N].
//
//   out = linear(x, w, bias) + residual
//
// Exactly the two ops it replaces: the sum is rounded to f32 before the
// residual is added. Made by passes/fuse_linear_add.
#include <vector>

#include "ir/axes.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferLinearAdd(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"x", "TK"},
                                    {"w", "NK", Elem::kStored},
                                    {"residual", "TN"},
                                    {"bias", "N", Elem::kStored}};
  HX_ASSIGN_OR_RETURN(const Axes axes, MatchInputs(context, kInputs));
  return axes.Activation("TN");
}

HostTensor InterpretLinearAdd(const OpContext& context,
                              std::span<const HostTensor* const> inputs,
                              const TensorType& output) {
  std::vector<const HostTensor*> linear_inputs = {inputs[0], inputs[1]};
  if (inputs.size() > 3) linear_inputs.push_back(inputs[3]);
  std::vector<Operand> operands(context.operands.begin(),
                                context.operands.end());
  if (operands.size() > 2) operands.erase(operands.begin() + 2);
  const OpContext linear_context{
      .inputs = context.inputs, .attrs = context.attrs, .operands = operands};
  const HostTensor linear =
      InterpretLinear(linear_context, linear_inputs, output);
  return MapPairs(linear, *inputs[2], [](double a, double b) { return a + b; });
}

}  // namespace hexllm::ir

// linear: x[T,K], w[N,K], bias[N]? -> [T,N].
//
//   out[t,n] = sum over k of x[t,k] * w[n,k]  (+ bias[n])
//
// Weights and bias have any stored type. The layout is that of checkpoints
// (torch.nn.Linear): one row per output. Sums are in double; where weights have
// codes, they are as ir/ops/encoded_linear.h says, and only there lose the low
// {dropped_bits}, 1 to 31 of them, as the accumulators of a chip do, or become
// codes with {fixed_point=1}.
#include "base/check.h"
#include "ir/axes.h"
#include "ir/ops/encoded_linear.h"
#include "ir/ops/table.h"

namespace hexllm::ir {
namespace {

HostTensor LinearOfFloats(std::span<const HostTensor* const> inputs,
                          const TensorType& output) {
  const HostTensor& x = *inputs[0];
  const HostTensor& w = *inputs[1];
  const auto rows = static_cast<size_t>(output.shape[0]);
  const auto width_out = static_cast<size_t>(output.shape[1]);
  const auto width_in = static_cast<size_t>(x.type.shape[1]);
  HostTensor out{.type = output};
  out.floats.reserve(rows * width_out);
  for (size_t t = 0; t < rows; ++t) {
    for (size_t n = 0; n < width_out; ++n) {
      double sum =
          inputs.size() > 2 ? static_cast<double>(inputs[2]->floats[n]) : 0.0;
      for (size_t k = 0; k < width_in; ++k) {
        sum += static_cast<double>(x.floats[t * width_in + k]) *
               static_cast<double>(w.floats[n * width_in + k]);
      }
      out.floats.push_back(static_cast<float>(sum));
    }
  }
  return out;
}

}  // namespace

Result<TensorType> InferLinear(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {
      {"x", "TK"}, {"w", "NK", Elem::kStored}, {"bias", "N", Elem::kStored}};
  HX_ASSIGN_OR_RETURN(const Axes axes, MatchInputs(context, kInputs));
  return axes.Activation("TN");
}

HostTensor InterpretLinear(const OpContext& context,
                           std::span<const HostTensor* const> inputs,
                           const TensorType& output) {
  if (IsLinearOfCodes(context)) return LinearOfCodes(context, inputs, output);
  HX_CHECK(OptionalIntAttr(context.attrs, AttrName::kDroppedBits) == 0);
  HX_CHECK(OptionalIntAttr(context.attrs, AttrName::kFixedPoint) == 0);
  if (IsLinearOfBlocks(context)) return LinearOfBlocks(context, inputs, output);
  return LinearOfFloats(inputs, output);
}

}  // namespace hexllm::ir

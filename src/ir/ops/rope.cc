// rope: x[T,H,D], cos[T,R/2], sin[T,R/2] -> [T,H,D].
//
// Rotary position embedding (Su et al. 2021) in half-split layout, as Hugging
// Face stores it: element i pairs with i + R/2. Elements from R on (partial
// rotary) pass unchanged; R is at most D.
//
//   out[i]       = x[i] * cos[i] - x[i + R/2] * sin[i]      for i < R/2
//   out[i + R/2] = x[i + R/2] * cos[i] + x[i] * sin[i]
#include "ir/axes.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferRope(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"x", "THD"}, {"cos", "Tr"}, {"sin", "Tr"}};
  HX_ASSIGN_OR_RETURN(const Axes axes, MatchInputs(context, kInputs));
  if (axes['r'] > axes['D'] / 2) {
    return Error{ErrorCode::kBadInput,
                 "cos: expected [T,R/2] with R <= D, found R/2=" +
                     std::to_string(axes['r']) +
                     ", D=" + std::to_string(axes['D'])};
  }
  return axes.Activation("THD");
}

HostTensor InterpretRope(const OpContext&,
                         std::span<const HostTensor* const> inputs,
                         const TensorType& output) {
  const std::vector<float>& x = inputs[0]->floats;
  const auto heads = static_cast<size_t>(output.shape[1]);
  const auto head_dim = static_cast<size_t>(output.shape[2]);
  const auto half = static_cast<size_t>(inputs[1]->type.shape[1]);
  HostTensor out{.type = output, .floats = x};
  for (size_t row = 0; row * head_dim < x.size(); ++row) {
    const size_t t = row / heads;
    for (size_t i = 0; i < half; ++i) {
      const auto cos = static_cast<double>(inputs[1]->floats[t * half + i]);
      const auto sin = static_cast<double>(inputs[2]->floats[t * half + i]);
      const auto a = static_cast<double>(x[row * head_dim + i]);
      const auto b = static_cast<double>(x[row * head_dim + i + half]);
      out.floats[row * head_dim + i] = static_cast<float>(a * cos - b * sin);
      out.floats[row * head_dim + i + half] =
          static_cast<float>(b * cos + a * sin);
    }
  }
  return out;
}

}  // namespace hexllm::ir

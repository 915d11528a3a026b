// layer_norm: x[..,M], w[M], bias[M] {eps} -> [..,M].
//
//   out = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * w + bias
//
// Means are over the last axis (Ba et al. 2016).
#include <cmath>

#include "ir/axes.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferLayerNorm(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {
      {"x", ".M"}, {"w", "M", Elem::kStored}, {"bias", "M", Elem::kStored}};
  HX_RETURN_IF_ERROR(MatchInputs(context, kInputs).status());
  if (FloatAttr(context.attrs, AttrName::kEps) < 0) {
    return Error{ErrorCode::kBadInput,
                 "attribute eps: expected 0 or more, found a negative number"};
  }
  return *context.inputs[0];
}

HostTensor InterpretLayerNorm(const OpContext& context,
                              std::span<const HostTensor* const> inputs,
                              const TensorType& output) {
  const HostTensor& x = *inputs[0];
  const std::vector<float>& w = inputs[1]->floats;
  const std::vector<float>& bias = inputs[2]->floats;
  const double eps = FloatAttr(context.attrs, AttrName::kEps);
  const auto width = static_cast<double>(w.size());
  HostTensor out{.type = output, .floats = x.floats};
  for (size_t row = 0; row < x.floats.size(); row += w.size()) {
    double sum = 0;
    for (size_t i = 0; i < w.size(); ++i)
      sum += static_cast<double>(x.floats[row + i]);
    const double mean = sum / width;
    double squares = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      const double centred = static_cast<double>(x.floats[row + i]) - mean;
      squares += centred * centred;
    }
    const double inverse = 1.0 / std::sqrt(squares / width + eps);
    for (size_t i = 0; i < w.size(); ++i) {
      const double normed =
          (static_cast<double>(x.floats[row + i]) - mean) * inverse;
      out.floats[row + i] = static_cast<float>(
          normed * static_cast<double>(w[i]) + static_cast<double>(bias[i]));
    }
  }
  return out;
}

}  // namespace hexllm::ir

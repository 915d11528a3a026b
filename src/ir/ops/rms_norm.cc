// rms_norm: x[..,M], w[M] {eps, weight_offset} -> [..,M].
//
//   out = x / sqrt(mean(x^2) + eps) * (w + weight_offset)
//
// The mean is over the last axis (Zhang & Sennrich 2019). weight_offset is 1 in
// models that store w - 1 (Gemma), else 0. As chips have it, 1 / sqrt is
// FastInverseRoot (base/chip_arithmetic.h) of that sum in f32 with
// {fast_root=1}, and with {rounds_down=1} outputs are rounded down to codes.
#include <cmath>

#include "base/check.h"
#include "base/chip_arithmetic.h"
#include "ir/axes.h"
#include "ir/encode.h"
#include "ir/ops/table.h"

namespace hexllm::ir {
namespace {

// Of the mean of squares.
double InverseRoot(const OpContext& context, double mean) {
  const double eps = FloatAttr(context.attrs, AttrName::kEps);
  if (OptionalIntAttr(context.attrs, AttrName::kFastRoot) == 0)
    return 1.0 / std::sqrt(mean + eps);
  const double sum = mean + static_cast<double>(static_cast<float>(eps));
  return static_cast<double>(FastInverseRoot(static_cast<float>(sum)));
}

float Rounded(const OpContext& context, double value) {
  if (OptionalIntAttr(context.attrs, AttrName::kRoundsDown) == 0)
    return static_cast<float>(value);
  HX_CHECK(context.output != nullptr);
  return DecodeOne(*context.output, EncodeDown(*context.output, value));
}

}  // namespace

Result<TensorType> InferRmsNorm(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"x", ".M"}, {"w", "M", Elem::kStored}};
  HX_RETURN_IF_ERROR(MatchInputs(context, kInputs).status());
  if (FloatAttr(context.attrs, AttrName::kEps) < 0) {
    return Error{ErrorCode::kBadInput,
                 "attribute eps: expected 0 or more, found a negative number"};
  }
  return *context.inputs[0];
}

HostTensor InterpretRmsNorm(const OpContext& context,
                            std::span<const HostTensor* const> inputs,
                            const TensorType& output) {
  const HostTensor& x = *inputs[0];
  const std::vector<float>& w = inputs[1]->floats;
  const double offset = FloatAttr(context.attrs, AttrName::kWeightOffset);
  HostTensor out{.type = output, .floats = x.floats};
  for (size_t row = 0; row < x.floats.size(); row += w.size()) {
    double squares = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      const auto value = static_cast<double>(x.floats[row + i]);
      squares += value * value;
    }
    const double inverse =
        InverseRoot(context, squares / static_cast<double>(w.size()));
    for (size_t i = 0; i < w.size(); ++i) {
      const double normed = static_cast<double>(x.floats[row + i]) * inverse;
      out.floats[row + i] =
          Rounded(context, normed * (static_cast<double>(w[i]) + offset));
    }
  }
  return out;
}

}  // namespace hexllm::ir

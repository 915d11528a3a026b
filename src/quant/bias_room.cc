#include "quant/bias_room.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "quant/block_scales.h"
#include "quant/range.h"
#include "quant/weight_rows.h"

namespace hexllm::quant {
namespace {

// A little less than 2^31: scales are floats, rounded to 24 bits.
constexpr double kMostBiasCode = 2147483000;

// The factors of channel `index`, for a scale that goes from `before` to
// `after`.
void RescaleFactors(ir::Encoding& weight, size_t index, float before,
                    float after) {
  const size_t blocks = weight.block_scales.size() / weight.scales.size();
  for (uint8_t& factor :
       std::span(weight.block_scales).subspan(index * blocks, blocks)) {
    const float wanted =
        std::nearbyint(static_cast<float>(factor) * (before / after));
    factor = static_cast<uint8_t>(
        std::clamp(wanted, 1.0f, static_cast<float>(kBlockSteps)));
  }
}

}  // namespace

Result<int64_t> MakeRoomForBias(const ir::Constant& bias, double x_scale,
                                ir::Encoding& weight) {
  // Where a weight is nothing but zeros, no step is too coarse.
  const float zeros = LeastScale(16);
  int64_t coarser = 0;
  const auto raise = [&](size_t index, float value) {
    const double wanted =
        std::abs(static_cast<double>(value)) / (x_scale * kMostBiasCode);
    const float before = weight.scales[index];
    if (wanted <= static_cast<double>(before)) return;
    const auto after = static_cast<float>(wanted);
    if (weight.block > 0) RescaleFactors(weight, index, before, after);
    weight.scales[index] = after;
    if (before > zeros) ++coarser;
  };
  HX_RETURN_IF_ERROR(VisitRows(bias, std::numeric_limits<float>::max(),
                               [&](const WeightRow& row) {
                                 if (weight.axis < 0)
                                   return raise(0, row.magnitude);
                                 for (size_t n = 0; n < row.values.size(); ++n)
                                   raise(n, row.values[n]);
                               }));
  return coarser;
}

}  // namespace hexllm::quant

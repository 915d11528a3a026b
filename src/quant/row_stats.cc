#include "quant/row_stats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/float4.h"

namespace hexllm::quant {
namespace {

constexpr size_t kLanes = 4;

}  // namespace

float Magnitude(std::span<const float> values) {
  Int4 most{};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    most = Max4(MagnitudeBits4(Load4(values.data() + i)), most);
  int32_t bits = std::max({most[0], most[1], most[2], most[3]});
  for (; i < values.size(); ++i) {
    bits =
        std::max(bits, std::bit_cast<int32_t>(values[i]) & int32_t{0x7fffffff});
  }
  return std::bit_cast<float>(bits);
}

float FiniteMagnitude(std::span<const float> values) {
  const float magnitude = Magnitude(values);
  if (std::isfinite(magnitude)) return magnitude;
  float most = 0;
  for (const float value : values)
    if (std::isfinite(value)) most = std::max(most, std::abs(value));
  return most;
}

RowStats StatsOf(std::span<const float> values) {
  RowStats stats;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Range extremes = {kInfinity, -kInfinity};
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    ++stats.finite;
    extremes = {std::min(extremes.min, value), std::max(extremes.max, value)};
    stats.square_sum += static_cast<double>(value) * static_cast<double>(value);
  }
  if (stats.finite > 0) stats.extremes = extremes;
  return stats;
}

double RoundingError(std::span<const float> values, SymmetricGrid grid,
                     double enough) {
  // Errors are summed in steps, so that their squares neither overflow nor
  // vanish, and in float only over short runs.
  constexpr size_t kRun = 256;
  const float inverse = 1 / grid.scale;
  const double step_square =
      static_cast<double>(grid.scale) * static_cast<double>(grid.scale);
  double total = 0;
  for (size_t at = 0; at < values.size() && total <= enough; at += kRun) {
    const auto run = values.subspan(at, std::min(kRun, values.size() - at));
    Float4 sum{};
    size_t i = 0;
    for (; i + kLanes <= run.size(); i += kLanes) {
      const Float4 x = Load4(run.data() + i) * Splat4(inverse);
      const Float4 inside =
          Min4(Max4(x, Splat4(-grid.most)), Splat4(grid.most));
      const Float4 error = x - RoundEven4(inside);
      sum += error * error;
    }
    float run_sum = Sum4(sum);
    for (; i < run.size(); ++i) {
      const float x = run[i] * inverse;
      const float error =
          x - std::nearbyint(std::clamp(x, -grid.most, grid.most));
      run_sum += error * error;
    }
    total += static_cast<double>(run_sum) * step_square;
  }
  return total;
}

}  // namespace hexllm::quant

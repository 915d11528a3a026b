#include "quant/row_stats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/float4.h"

namespace hexllm::quant {
namespace {

constexpr size_t kLanes = 4;
// Sums are in float only over so many numbers.
constexpr size_t kRun = 256;

RowStats StatsOfAny(std::span<const float> values) {
  RowStats stats;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Range extremes = {kInfinity, -kInfinity};
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    ++stats.finite;
    extremes = {std::min(extremes.min, value), std::max(extremes.max, value)};
  }
  if (stats.finite > 0) stats.extremes = extremes;
  return stats;
}

// All are finite and not huge.
RowStats StatsOfUsual(std::span<const float> values) {
  const size_t whole = values.size() - values.size() % kLanes;
  RowStats stats = StatsOfAny(values.subspan(whole));
  if (whole == 0) return stats;
  Float4 min = Load4(values.data());
  Float4 max = min;
  for (size_t i = 0; i < whole; i += kLanes) {
    const Float4 x = Load4(values.data() + i);
    min = Min4(x, min);
    max = Max4(x, max);
  }
  const Range rest = stats.finite > 0 ? stats.extremes : Range{min[0], max[0]};
  stats.extremes = {std::min({min[0], min[1], min[2], min[3], rest.min}),
                    std::max({max[0], max[1], max[2], max[3], rest.max})};
  stats.finite = values.size();
  return stats;
}

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
  // Beyond, squares summed in float might overflow.
  constexpr float kMostSquared = 1e15f;
  return Magnitude(values) <= kMostSquared ? StatsOfUsual(values)
                                           : StatsOfAny(values);
}

double RoundingError(std::span<const float> values, SymmetricGrid grid,
                     double enough) {
  // Errors are summed in steps, so that their squares neither overflow nor
  // vanish.
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

// Statistics of runs of floats, four at a time. Used by observers and by the
// encoding of weights.
#pragma once

#include <cstdint>
#include <span>

#include "quant/range.h"

namespace hexllm::quant {

// max |x|; NaN or infinity when there is one among the values. 0 when empty.
float Magnitude(std::span<const float> values);
// max |x| of those that are finite.
float FiniteMagnitude(std::span<const float> values);

struct RowStats {
  uint64_t finite = 0;  // how many
  Range extremes = {};  // of the finite ones; [0, 0] when there is none
};
RowStats StatsOf(std::span<const float> values);

// The sum of (x - clamp(rint(x / scale), -most, most) * scale)^2, a little off
// in its last digits. Gives up and returns what it has (above `enough`) as soon
// as that is more than `enough`. most <= 2^22.
struct SymmetricGrid {
  float scale = 1;
  float most = 7;
};
double RoundingError(std::span<const float> values, SymmetricGrid grid,
                     double enough);

}  // namespace hexllm::quant

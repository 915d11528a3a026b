#include "base/chip_softmax.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace hexllm {
namespace {

constexpr int kFactorBits = 22;
constexpr int64_t kOne = 32767;  // the power of no distance

// (c0 + (c1 + c2 g) g) / 2^15 is 2^g / 2 in a quarter of 0 .. 1; c0 and c1 are
// in halves.
struct Piece {
  int64_t c0;
  int64_t c1;
  int64_t c2;
};
constexpr Piece kPieces[] = {{32769, 22652, 4300},
                             {32876, 21816, 5119},
                             {33371, 19857, 6087},
                             {34681, 16401, 7227}};

// 2^-(t / 2^22) in 2^-15. Without a branch: which codes count is hard to guess.
int64_t PowerOf(int64_t t) {
  constexpr int64_t kEnd = int64_t{15} << kFactorBits;  // 0 from there on
  const int64_t near = t < kEnd ? t : kEnd;
  const int64_t g = 65535 - ((near >> (kFactorBits - 16)) & 65535);
  const Piece& piece = kPieces[g >> 14];
  const int64_t slope = (piece.c1 * 32768 + piece.c2 * g) >> 16;
  return ((piece.c0 * 32768 + slope * g) >> 16) >> (near >> kFactorBits);
}

float LargestOf(std::span<const float> x) {
  float most = -std::numeric_limits<float>::infinity();
  for (const float value : x) most = most < value ? value : most;
  return most;
}

// The powers of a row, into `out`; returns their sum.
int64_t WritePowers(std::span<const float> x, float scale,
                    std::span<float> out) {
  constexpr float kMostSteps = 65536;
  constexpr double kMostFactor = 1 << 30;  // 256 octaves a step
  const double factor_of_scale = std::floor(std::ldexp(
      static_cast<double>(scale) * std::numbers::log2e, kFactorBits));
  const auto factor =
      static_cast<int64_t>(std::min(factor_of_scale, kMostFactor));
  const float per_scale = 1 / scale;
  const float most = LargestOf(x);
  int64_t sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    // A whole number but for rounding.
    const float steps = (most - x[i]) * per_scale + 0.5F;
    const float near = steps < kMostSteps ? steps : kMostSteps;  // NaN too
    const int64_t power = PowerOf(static_cast<int64_t>(near) * factor);
    sum += power;
    out[i] = static_cast<float>(power);
  }
  return sum;
}

}  // namespace

void ChipSoftmax(std::span<const float> x, float scale, std::span<float> out) {
  HX_CHECK(x.size() == out.size());
  if (x.empty()) return;
  const int64_t sum = WritePowers(x, scale, out);
  if (sum < kOne) {  // of nothing that is a number
    std::ranges::fill(out, 0.0F);
    return;
  }
  const int n =
      static_cast<int>(std::bit_width(static_cast<uint64_t>(sum))) - 1;
  const int bits = std::min(n - 1, 16);
  const auto inverse = static_cast<int64_t>(std::floor(
      std::ldexp(1.0, n + bits) / (static_cast<double>(sum / 2 * 2) + 0.5) +
      0.5));
  for (float& value : out) {
    const int64_t code =
        (static_cast<int64_t>(value) * inverse) >> (n + bits - 16);
    value = static_cast<float>(std::min<int64_t>(code, 65535)) / 65536;
  }
}

}  // namespace hexllm

// How the HTP computes where others round to the nearest, as measured on v73 to
// v81 (docs/htp-backend.md). Shared by the interpreter and the CPU engine.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace hexllm {

// Sums of products of 8-bit codes as codes of another scale, in fixed point.

// A ratio of scales. With ratio = m * 2^e, 1/2 <= m < 1:
//   shift = -3 - e, multiplier = round(ratio * 2^(shift + 15))
struct Rescale {
  int32_t shift = 0;
  int32_t multiplier = 0;  // 2^11 to 2^12; 0 for what is no ratio
};

inline Rescale RescaleOf(double ratio) {
  if (!(ratio > 0) || !std::isfinite(ratio)) return {};
  int exponent = 0;
  std::frexp(ratio, &exponent);
  const int32_t shift = -3 - exponent;
  return {.shift = shift,
          .multiplier = static_cast<int32_t>(
              std::floor(std::ldexp(ratio, shift + 15) + 0.5))};
}

// floor(((2 sixteenths + 1) multiplier + 2^15) / 2^16), the steps of the new
// scale, where sixteenths = floor(sum / 2^shift) are up to twice a sixteenth of
// them. Beyond 2^20 sixteenths: any number beyond 2^14.
inline int64_t RescaleSixteenths(double sixteenths, int32_t multiplier) {
  constexpr double kMost = 1 << 20;
  const double above = sixteenths > -kMost ? sixteenths : -kMost;  // no NaN
  const auto kept = static_cast<int64_t>(above < kMost ? above : kMost);
  return ((2 * kept + 1) * multiplier + (1 << 15)) >> 16;
}

// 1 / sqrt(x) up to 5e-6 below: two steps of Newton's method from the
// well-known first guess, in f32.
inline float FastInverseRoot(float x) {
  float root =
      std::bit_cast<float>(0x5f375a86U - (std::bit_cast<uint32_t>(x) >> 1));
  for (int i = 0; i < 2; ++i) root *= 1.5F - 0.5F * x * root * root;
  return root;
}

}  // namespace hexllm

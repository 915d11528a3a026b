// The 16-lane sums of the reduction order (kernels.h), as plain loops.
#pragma once

#include <cmath>
#include <cstdint>

namespace hexllm::cpu::ref {

inline constexpr int64_t kLanes = 16;

// Adds 16 lanes in the fixed tree: (l, l + 8), (l, l + 4), (l, l + 2), (0, 1).
inline float AddLanes(const float (&lanes)[kLanes]) {
  float sums[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) sums[l] = lanes[l];
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
  }
  return sums[0];
}

// sum a[k] * b[k]; a short tail is padded with zeros.
inline float Dot(const float* a, const float* b, int64_t k) {
  float lanes[kLanes] = {};
  for (int64_t begin = 0; begin < k; begin += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) {
      const bool inside = begin + l < k;
      lanes[l] = std::fma(inside ? a[begin + l] : 0.0f,
                          inside ? b[begin + l] : 0.0f, lanes[l]);
    }
  }
  return AddLanes(lanes);
}

}  // namespace hexllm::cpu::ref

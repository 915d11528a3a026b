// The roof of the kernels: fused multiply-adds per second of one core, from
// independent chains in registers.
#pragma once

#include <cstdint>

#include "backend/cpu/engine.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace hexllm::bench {

// Chains enough for latency (4 to 5 cycles) x throughput (2 to 4 a cycle).
inline constexpr int kFmaChains = 16;

#if defined(__x86_64__)

__attribute__((target("avx512f"))) inline float ChainsAvx512(int64_t steps) {
  __m512 sum[kFmaChains];
  for (__m512& s : sum) s = _mm512_setzero_ps();
  const __m512 a = _mm512_set1_ps(0.5f);
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 16
    for (__m512& s : sum) s = _mm512_fmadd_ps(s, a, a);
  }
  for (int c = 1; c < kFmaChains; ++c) sum[0] = _mm512_add_ps(sum[0], sum[c]);
  return _mm512_cvtss_f32(sum[0]);
}

__attribute__((target("avx2,fma"))) inline float ChainsAvx2(int64_t steps) {
  // 16 registers hold these and the factor.
  constexpr int kChains = 12;
  __m256 sum[kChains];
  for (__m256& s : sum) s = _mm256_setzero_ps();
  const __m256 a = _mm256_set1_ps(0.5f);
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 16
    for (__m256& s : sum) s = _mm256_fmadd_ps(s, a, a);
  }
  for (int c = 1; c < kChains; ++c) sum[0] = _mm256_add_ps(sum[0], sum[c]);
  return _mm256_cvtss_f32(sum[0]);
}

#elif defined(__aarch64__)

inline float ChainsNeon(int64_t steps) {
  float32x4_t sum[kFmaChains];
  for (float32x4_t& s : sum) s = vdupq_n_f32(0.0f);
  const float32x4_t a = vdupq_n_f32(0.5f);
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 16
    for (float32x4_t& s : sum) s = vfmaq_f32(a, s, a);
  }
  for (int c = 1; c < kFmaChains; ++c) sum[0] = vaddq_f32(sum[0], sum[c]);
  return vgetq_lane_f32(sum[0], 0);
}

#endif

// Runs `steps` rounds of chains and returns the floating-point operations done;
// `sink` keeps the compiler from dropping them.
inline double RunFmaChains(cpu::Isa isa, int64_t steps, float& sink) {
  const auto flops = [&](int chains, int lanes) {
    return 2.0 * static_cast<double>(steps * chains * lanes);
  };
#if defined(__x86_64__)
  if (isa == cpu::Isa::kAvx512 || isa == cpu::Isa::kAvx512Vnni) {
    sink = ChainsAvx512(steps);
    return flops(kFmaChains, 16);
  }
  sink = ChainsAvx2(steps);
  return flops(12, 8);
#elif defined(__aarch64__)
  (void)isa;
  sink = ChainsNeon(steps);
  return flops(kFmaChains, 4);
#else
  (void)isa;
  (void)sink;
  return flops(0, 0);
#endif
}

}  // namespace hexllm::bench

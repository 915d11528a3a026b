// Four floats at a time, for loops whose speed matters but that are no CPU
// kernels: searching scales of weights, statistics of activations. Compilers do
// not vectorize such loops by themselves without being allowed to reorder sums.
// Element by element the same arithmetic on every instruction set. Needs GCC's
// or Clang's vector extensions.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hexllm {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));

inline Float4 Load4(const float* at) {
  Float4 v;
  std::memcpy(&v, at, sizeof(v));
  return v;
}
inline void Store4(Float4 v, float* at) { std::memcpy(at, &v, sizeof(v)); }
inline Float4 Splat4(float x) { return Float4{x, x, x, x}; }

// a < b ? a : b, and a > b ? a : b: NaN in `a` gives `b`. Spelled out where
// compilers do not see that one instruction does it.
#if defined(__SSE2__)
inline Float4 Min4(Float4 a, Float4 b) { return _mm_min_ps(a, b); }
inline Float4 Max4(Float4 a, Float4 b) { return _mm_max_ps(a, b); }
#else
inline Float4 Min4(Float4 a, Float4 b) { return a < b ? a : b; }
inline Float4 Max4(Float4 a, Float4 b) { return a > b ? a : b; }
#endif

// To the nearest integer, half to even, for magnitudes up to 2^22: the sum has
// no bits left for a fraction.
inline Float4 RoundEven4(Float4 v) {
  const Float4 shift = Splat4(0x1.8p23f);
  return (v + shift) - shift;
}

// The magnitudes as the bits of floats, whose order is that of the numbers; NaN
// is greatest.
inline Int4 MagnitudeBits4(Float4 v) {
  Int4 bits;
  std::memcpy(&bits, &v, sizeof(bits));
  return bits & 0x7fffffff;
}
inline Int4 Max4(Int4 a, Int4 b) { return a > b ? a : b; }

inline float Sum4(Float4 v) { return (v[0] + v[1]) + (v[2] + v[3]); }

}  // namespace hexllm

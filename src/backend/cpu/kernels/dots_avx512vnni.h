// The abstraction of integer dot products (dots_body.h) on AVX-512 VNNI, whose
// instruction is the model of the packed layout: vpdpbusd adds to 16 sums of 32
// bits the products of four unsigned bytes each (a line of weights) and four
// signed ones (a group of activations, the same for all 16). What the names
// mean is told here, once for all instruction sets.
// Include only in files compiled with the flags of avx512vnni (flags.cmake).
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

struct DotsAvx512Vnni {
  // --- kLanes floats and integers.
  static constexpr int kLanes = 16;
  using F = __m512;
  using I = __m512i;
  HX_INLINE static F Set(float value) { return _mm512_set1_ps(value); }
  HX_INLINE static F Add(F a, F b) { return _mm512_add_ps(a, b); }
  HX_INLINE static F Mul(F a, F b) { return _mm512_mul_ps(a, b); }
  HX_INLINE static F Fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  HX_INLINE static F Load(const float* p) { return _mm512_loadu_ps(p); }
  HX_INLINE static void Store(float* p, F a) { _mm512_storeu_ps(p, a); }
  HX_INLINE static F LoadHalves(const uint8_t* p) {
    return _mm512_cvtph_ps(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  HX_INLINE static F FromInt(I a) { return _mm512_cvtepi32_ps(a); }
  HX_INLINE static void StoreInts(int32_t* p, I a) {
    _mm512_storeu_si512(p, a);
  }

  // --- W: four bytes of each of kLanes rows.
  using W = __m512i;
  HX_INLINE static W LoadW(const uint8_t* p) { return _mm512_loadu_si512(p); }
  HX_INLINE static W LowNibbles(W w) {
    return _mm512_and_si512(w, _mm512_set1_epi8(15));
  }
  HX_INLINE static W HighNibbles(W w) {
    return LowNibbles(_mm512_srli_epi16(w, 4));
  }

  // --- Nibbles: sum += the four codes of w, 0 to 15, times group `group` of x.
  using NibbleX = const int8_t*;
  using NibbleSum = __m512i;
  HX_INLINE static NibbleX PrepareNibbleX(const int8_t* codes) { return codes; }
  HX_INLINE static NibbleSum StartNibbles() { return _mm512_setzero_si512(); }
  HX_INLINE static void AddNibbles(NibbleSum& sum, W w, NibbleX x, int group) {
    sum = _mm512_dpbusd_epi32(sum, w, Group(x, group));
  }
  HX_INLINE static I TotalNibbles(NibbleSum sum) { return sum; }

  // --- Bytes, stored as code + 128: the same for codes -128 to 127.
  using ByteW = W;
  using ByteX = const int8_t*;
  using ByteSum = __m512i;
  HX_INLINE static ByteW SplitBytes(W w) { return w; }
  HX_INLINE static ByteX PrepareByteX(const int8_t* codes) { return codes; }
  // `sum` is that of all codes of x.
  HX_INLINE static ByteSum StartBytes(int32_t sum) {
    return _mm512_set1_epi32(-128 * sum);
  }
  HX_INLINE static void AddBytes(ByteSum& sum, ByteW w, ByteX x, int group) {
    sum = _mm512_dpbusd_epi32(sum, w, Group(x, group));
  }
  HX_INLINE static I TotalBytes(ByteSum sum) { return sum; }

  // --- Tile sizes (32 registers): two per row, and weights.
  static constexpr int kTileRows = 12;
  static constexpr int kTileVecs = 1;

 private:
  HX_INLINE static __m512i Group(const int8_t* x, int group) {
    int32_t four;
    memcpy(&four, x + 4 * group, sizeof(four));
    return _mm512_set1_epi32(four);
  }
};

}  // namespace
}  // namespace hexllm::cpu

// The abstraction of integer dot products (dots_body.h) on AVX2 and FMA. Names
// as in DotsAvx512. Include only in files compiled with the flags of avx2
// (flags.cmake).
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

struct DotsAvx2 {
  static constexpr int kLanes = 8;
  using F = __m256;
  using I = __m256i;
  HX_INLINE static F Set(float value) { return _mm256_set1_ps(value); }
  HX_INLINE static F Add(F a, F b) { return _mm256_add_ps(a, b); }
  HX_INLINE static F Mul(F a, F b) { return _mm256_mul_ps(a, b); }
  HX_INLINE static F Fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  HX_INLINE static F Load(const float* p) { return _mm256_loadu_ps(p); }
  HX_INLINE static void Store(float* p, F a) { _mm256_storeu_ps(p, a); }
  HX_INLINE static F LoadHalves(const uint8_t* p) {
    return _mm256_cvtph_ps(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  HX_INLINE static F FromInt(I a) { return _mm256_cvtepi32_ps(a); }

  using W = __m256i;
  HX_INLINE static W LoadW(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  HX_INLINE static W LowNibbles(W w) {
    return _mm256_and_si256(w, _mm256_set1_epi8(15));
  }
  HX_INLINE static W HighNibbles(W w) {
    return LowNibbles(_mm256_srli_epi16(w, 4));
  }

  // --- Nibbles: one block, in 16 bits: at most 16 products of 15 and 127.
  using NibbleX = const int8_t*;
  using NibbleSum = __m256i;
  HX_INLINE static void PrepareNibbleX(const int8_t* codes, NibbleX& x) {
    x = codes;
  }
  HX_INLINE static NibbleSum StartNibbles() { return _mm256_setzero_si256(); }
  HX_INLINE static void AddNibbles(NibbleSum& sum, W w, NibbleX x, int group) {
    const __m256i pairs = _mm256_maddubs_epi16(w, SetFour(x + 4 * group));
    sum = _mm256_add_epi16(sum, pairs);
  }
  HX_INLINE static I TotalNibbles(NibbleSum sum) {
    return _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
  }

  // --- Bytes: widened, those of even and of odd k apart, as in DotsAvx512.
  struct ByteW {
    __m256i even, odd;
  };
  struct ByteX {
    alignas(32) int16_t even[16];
    alignas(32) int16_t odd[16];
  };
  using ByteSum = __m256i;
  HX_INLINE static ByteW SplitBytes(W w) {
    return {_mm256_and_si256(w, _mm256_set1_epi16(255)),
            _mm256_srli_epi16(w, 8)};
  }
  HX_INLINE static void PrepareByteX(const int8_t* codes, ByteX& x) {
    const __m256i all =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    _mm256_store_si256(reinterpret_cast<__m256i*>(x.even),
                       _mm256_srai_epi16(_mm256_slli_epi16(all, 8), 8));
    _mm256_store_si256(reinterpret_cast<__m256i*>(x.odd),
                       _mm256_srai_epi16(all, 8));
  }
  HX_INLINE static ByteSum StartBytes(int32_t sum) {
    return _mm256_set1_epi32(-128 * sum);
  }
  HX_INLINE static void AddBytes(ByteSum& sum, const ByteW& w, const ByteX& x,
                                 int group) {
    const __m256i even = _mm256_madd_epi16(w.even, SetFour(x.even + 2 * group));
    const __m256i odd = _mm256_madd_epi16(w.odd, SetFour(x.odd + 2 * group));
    sum = _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
  }
  HX_INLINE static I TotalBytes(ByteSum sum) { return sum; }

  // --- Products of bytes and 16-bit codes: rows 0 to 3, then 4 to 7, two sums
  // for each.
  struct WideW {
    __m256i low, high;
  };
  using WideSum = WideW;
  HX_INLINE static WideW ReadWide(const uint8_t* line) {
    const auto* at = reinterpret_cast<const __m128i*>(line);
    return {_mm256_cvtepu8_epi16(_mm_loadu_si128(at)),
            _mm256_cvtepu8_epi16(_mm_loadu_si128(at + 1))};
  }
  HX_INLINE static WideSum StartWide() {
    return {_mm256_setzero_si256(), _mm256_setzero_si256()};
  }
  HX_INLINE static void AddWide(WideSum& sum, const WideW& w,
                                const int16_t* x) {
    int64_t four;
    memcpy(&four, x, sizeof(four));
    const __m256i codes = _mm256_set1_epi64x(four);
    AddNow(sum.low, _mm256_madd_epi16(w.low, codes));
    AddNow(sum.high, _mm256_madd_epi16(w.high, codes));
  }
  HX_INLINE static void AddTotals(const WideSum& sum, double place,
                                  double* sums) {
    AddFour(sum.low, place, sums);
    AddFour(sum.high, place, sums + 4);
  }

  // --- Tile sizes (16 registers): a sum per row, weights and products; the
  // floats are needed once per block and may lie in memory.
  static constexpr int kTileRows = 6;
  static constexpr int kTileVecs = 1;
  static constexpr int kWideRows = 6;

 private:
  HX_INLINE static __m256i SetFour(const void* p) {
    int32_t four;
    memcpy(&four, p, sizeof(four));
    return _mm256_set1_epi32(four);
  }
  // Adds here: GCC would put the additions of all rows off to the end of the
  // loop and keep the products in memory.
  HX_INLINE static void AddNow(__m256i& sum, __m256i product) {
    asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(product));
  }
  // Adds place times the sums of four rows.
  HX_INLINE static void AddFour(__m256i pairs, double place, double* sums) {
    const __m256d even = _mm256_cvtepi32_pd(_mm256_castsi256_si128(pairs));
    const __m256d odd = _mm256_cvtepi32_pd(_mm256_extracti128_si256(pairs, 1));
    const __m256d rows = _mm256_permute4x64_pd(_mm256_hadd_pd(even, odd), 0xd8);
    _mm256_storeu_pd(sums, _mm256_fmadd_pd(rows, _mm256_set1_pd(place),
                                           _mm256_loadu_pd(sums)));
  }
};

}  // namespace
}  // namespace hexllm::cpu

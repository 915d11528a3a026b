// The abstraction of integer dot products (dots_body.h) on AVX-512 (F, BW),
// without VNNI. What the names mean is told here, once for all instruction
// sets. Include only in files compiled with the flags of avx512 (flags.cmake).
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

// What does not multiply codes: the same with VNNI.
struct DotsAvx512Registers {
  // --- kLanes floats and 32-bit integers.
  static constexpr int kLanes = 16;
  using F = __m512;
  using I = __m512i;
  HX_INLINE static F Set(float value) { return _mm512_set1_ps(value); }
  HX_INLINE static F Add(F a, F b) { return _mm512_add_ps(a, b); }
  HX_INLINE static F Mul(F a, F b) { return _mm512_mul_ps(a, b); }
  // a * b + c, rounded once.
  HX_INLINE static F Fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  HX_INLINE static F Load(const float* p) { return _mm512_loadu_ps(p); }
  HX_INLINE static void Store(float* p, F a) { _mm512_storeu_ps(p, a); }
  // kLanes stored halves.
  HX_INLINE static F LoadHalves(const uint8_t* p) {
    return _mm512_cvtph_ps(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  HX_INLINE static F FromInt(I a) { return _mm512_cvtepi32_ps(a); }

  // --- Bytes (a part of a line) and 16-bit codes: rows 0 to 7, then 8 to 15;
  // two sums of 32 bits for each row.
  struct WideW {
    __m512i low, high;
  };
  using WideSum = WideW;
  HX_INLINE static WideW ReadWide(const uint8_t* line) {
    const auto* at = reinterpret_cast<const __m256i*>(line);
    return {_mm512_cvtepu8_epi16(_mm256_loadu_si256(at)),
            _mm512_cvtepu8_epi16(_mm256_loadu_si256(at + 1))};
  }
  HX_INLINE static WideSum StartWide() {
    return {_mm512_setzero_si512(), _mm512_setzero_si512()};
  }
  // Adds place times the sums of kLanes rows to `sums`.
  HX_INLINE static void AddTotals(const WideSum& sum, double place,
                                  double* sums) {
    AddEight(sum.low, place, sums);
    AddEight(sum.high, place, sums + 8);
  }
  static constexpr int kWideRows = 12;  // of 32 registers

  // --- W: a line, or the part of it that belongs to kLanes rows: four bytes of
  // each.
  using W = __m512i;
  HX_INLINE static W LoadW(const uint8_t* p) { return _mm512_loadu_si512(p); }
  HX_INLINE static W LowNibbles(W w) {
    return _mm512_and_si512(w, _mm512_set1_epi8(15));
  }
  HX_INLINE static W HighNibbles(W w) {
    return LowNibbles(_mm512_srli_epi16(w, 4));
  }

 protected:
  // The four bytes at p, in all lanes.
  HX_INLINE static __m512i SetFour(const void* p) {
    int32_t four;
    memcpy(&four, p, sizeof(four));
    return _mm512_set1_epi32(four);
  }
  // The four codes at p, for all rows.
  HX_INLINE static __m512i SetFourWide(const int16_t* p) {
    int64_t four;
    memcpy(&four, p, sizeof(four));
    return _mm512_set1_epi64(four);
  }

 private:
  HX_INLINE static void AddEight(__m512i pairs, double place, double* sums) {
    const __m512i even = _mm512_srai_epi64(_mm512_slli_epi64(pairs, 32), 32);
    const __m512i odd = _mm512_srai_epi64(pairs, 32);
    const __m512d rows = _mm512_cvtepi64_pd(_mm512_add_epi64(even, odd));
    _mm512_storeu_pd(sums, _mm512_fmadd_pd(rows, _mm512_set1_pd(place),
                                           _mm512_loadu_pd(sums)));
  }
};

struct DotsAvx512 : DotsAvx512Registers {
  // --- Nibbles: one block, in 16 bits: at most 16 products of 15 and 127.
  using NibbleX = const int8_t*;  // the 32 codes of a block
  using NibbleSum = __m512i;
  HX_INLINE static void PrepareNibbleX(const int8_t* codes, NibbleX& x) {
    x = codes;
  }
  HX_INLINE static NibbleSum StartNibbles() { return _mm512_setzero_si512(); }
  // Adds the products of codes of w and group `group` of x.
  HX_INLINE static void AddNibbles(NibbleSum& sum, W w, NibbleX x, int group) {
    const __m512i pairs = _mm512_maddubs_epi16(w, SetFour(x + 4 * group));
    sum = _mm512_add_epi16(sum, pairs);
  }
  HX_INLINE static I TotalNibbles(NibbleSum sum) {
    return _mm512_madd_epi16(sum, _mm512_set1_epi16(1));
  }

  // Adds the products of a part of a line and four codes.
  HX_INLINE static void AddWide(WideSum& sum, const WideW& w,
                                const int16_t* x) {
    const __m512i codes = SetFourWide(x);
    AddNow(sum.low, _mm512_madd_epi16(w.low, codes));
    AddNow(sum.high, _mm512_madd_epi16(w.high, codes));
  }

  // --- Bytes, stored as code + 128: any number of blocks, in 32 bits. Products
  // of bytes would not fit in the 16 bits that maddubs has for two of them:
  // bytes are widened, those of even and of odd k apart.
  struct ByteW {
    __m512i even, odd;
  };
  struct ByteX {
    alignas(32) int16_t even[16];
    alignas(32) int16_t odd[16];
  };
  using ByteSum = __m512i;
  HX_INLINE static ByteW SplitBytes(W w) {
    return {_mm512_and_si512(w, _mm512_set1_epi16(255)),
            _mm512_srli_epi16(w, 8)};
  }
  HX_INLINE static void PrepareByteX(const int8_t* codes, ByteX& x) {
    const __m256i all =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    _mm256_store_si256(reinterpret_cast<__m256i*>(x.even),
                       _mm256_srai_epi16(_mm256_slli_epi16(all, 8), 8));
    _mm256_store_si256(reinterpret_cast<__m256i*>(x.odd),
                       _mm256_srai_epi16(all, 8));
  }
  // `sum` is that of all codes of x that will come: it takes the 128 off.
  HX_INLINE static ByteSum StartBytes(int32_t sum) {
    return _mm512_set1_epi32(-128 * sum);
  }
  HX_INLINE static void AddBytes(ByteSum& sum, const ByteW& w, const ByteX& x,
                                 int group) {
    const __m512i even = _mm512_madd_epi16(w.even, SetFour(x.even + 2 * group));
    const __m512i odd = _mm512_madd_epi16(w.odd, SetFour(x.odd + 2 * group));
    sum = _mm512_add_epi32(sum, _mm512_add_epi32(even, odd));
  }
  HX_INLINE static I TotalBytes(ByteSum sum) { return sum; }

  // --- Tile sizes (32 registers): a sum and a float for each row and
  // register of columns, weights, and the activations they share.
  static constexpr int kTileRows = 6;
  static constexpr int kTileVecs = 2;

 private:
  // As in DotsAvx2.
  HX_INLINE static void AddNow(__m512i& sum, __m512i product) {
    asm("vpaddd %1, %0, %0" : "+v"(sum) : "v"(product));
  }
};

}  // namespace
}  // namespace hexllm::cpu

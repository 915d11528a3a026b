// The abstraction of integer dot products (dots_body.h) on AVX-512 VNNI, whose
// instruction is the model of the packed layout: vpdpbusd adds to 16 sums of 32
// bits the products of four unsigned bytes each (a line of weights) and four
// signed ones (a group of activations, the same for all 16). Names as in
// DotsAvx512.
// Include only in files compiled with the flags of avx512vnni (flags.cmake).
#pragma once

#include "backend/cpu/kernels/dots_avx512.h"

namespace hexllm::cpu {
namespace {

struct DotsAvx512Vnni : DotsAvx512Registers {
  using NibbleX = const int8_t*;
  using NibbleSum = __m512i;
  HX_INLINE static void PrepareNibbleX(const int8_t* codes, NibbleX& x) {
    x = codes;
  }
  HX_INLINE static NibbleSum StartNibbles() { return _mm512_setzero_si512(); }
  HX_INLINE static void AddNibbles(NibbleSum& sum, W w, NibbleX x, int group) {
    sum = _mm512_dpbusd_epi32(sum, w, SetFour(x + 4 * group));
  }
  HX_INLINE static I TotalNibbles(NibbleSum sum) { return sum; }

  HX_INLINE static void AddWide(WideSum& sum, const WideW& w,
                                const int16_t* x) {
    const __m512i codes = SetFourWide(x);
    sum.low = _mm512_dpwssd_epi32(sum.low, w.low, codes);
    sum.high = _mm512_dpwssd_epi32(sum.high, w.high, codes);
  }

  using ByteW = W;
  using ByteX = const int8_t*;
  using ByteSum = __m512i;
  HX_INLINE static ByteW SplitBytes(W w) { return w; }
  HX_INLINE static void PrepareByteX(const int8_t* codes, ByteX& x) {
    x = codes;
  }
  HX_INLINE static ByteSum StartBytes(int32_t sum) {
    return _mm512_set1_epi32(-128 * sum);
  }
  HX_INLINE static void AddBytes(ByteSum& sum, ByteW w, ByteX x, int group) {
    sum = _mm512_dpbusd_epi32(sum, w, SetFour(x + 4 * group));
  }
  HX_INLINE static I TotalBytes(ByteSum sum) { return sum; }

  // --- Tile sizes (32 registers): a sum and a float for each row and
  // register of columns, weights, and the activations they share.
  static constexpr int kTileRows = 6;
  static constexpr int kTileVecs = 2;
};

}  // namespace
}  // namespace hexllm::cpu

// The abstraction of integer dot products (dots_body.h) on NEON (Armv8.0).
// Names as in DotsAvx512. Codes of weights are used signed: the stored bytes
// with their top bit flipped.
#pragma once

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

// What does not multiply codes: the same with dot product instructions.
struct DotsNeonRegisters {
  static constexpr int kLanes = 4;
  using F = float32x4_t;
  using I = int32x4_t;
  HX_INLINE static F Set(float value) { return vdupq_n_f32(value); }
  HX_INLINE static F Add(F a, F b) { return vaddq_f32(a, b); }
  HX_INLINE static F Mul(F a, F b) { return vmulq_f32(a, b); }
  HX_INLINE static F Fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
  HX_INLINE static F Load(const float* p) { return vld1q_f32(p); }
  HX_INLINE static void Store(float* p, F a) { vst1q_f32(p, a); }
  HX_INLINE static F LoadHalves(const uint8_t* p) {
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
  }
  HX_INLINE static F FromInt(I a) { return vcvtq_f32_s32(a); }

  using W = uint8x16_t;
  HX_INLINE static W LoadW(const uint8_t* p) { return vld1q_u8(p); }
  HX_INLINE static W LowNibbles(W w) { return vandq_u8(w, vdupq_n_u8(15)); }
  HX_INLINE static W HighNibbles(W w) { return vshrq_n_u8(w, 4); }

  // --- Bytes and 16-bit codes: four sums of 32 bits for each row.
  struct WideW {
    int16x8_t low, high;
  };
  struct WideSum {
    int32x4_t row[4];
  };
  HX_INLINE static WideW ReadWide(const uint8_t* line) {
    const uint8x16_t bytes = vld1q_u8(line);
    return {vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))),
            vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(bytes)))};
  }
  HX_INLINE static WideSum StartWide() {
    const int32x4_t zero = vdupq_n_s32(0);
    return {{zero, zero, zero, zero}};
  }
  HX_INLINE static void AddWide(WideSum& sum, const WideW& w,
                                const int16_t* x) {
    const int16x4_t codes = vld1_s16(x);
    sum.row[0] = vmlal_s16(sum.row[0], vget_low_s16(w.low), codes);
    sum.row[1] = vmlal_s16(sum.row[1], vget_high_s16(w.low), codes);
    sum.row[2] = vmlal_s16(sum.row[2], vget_low_s16(w.high), codes);
    sum.row[3] = vmlal_s16(sum.row[3], vget_high_s16(w.high), codes);
  }
  HX_INLINE static void AddTotals(const WideSum& sum, double place,
                                  double* sums) {
    for (int i = 0; i < 4; i += 2) {
      const int64x2_t rows =
          vpaddq_s64(vpaddlq_s32(sum.row[i]), vpaddlq_s32(sum.row[i + 1]));
      vst1q_f64(sums + i,
                vfmaq_n_f64(vld1q_f64(sums + i), vcvtq_f64_s64(rows), place));
    }
  }
  static constexpr int kWideRows = 6;  // of 32 registers

  using NibbleX = const int8_t*;
  HX_INLINE static void PrepareNibbleX(const int8_t* codes, NibbleX& x) {
    x = codes;
  }
  using ByteX = const int8_t*;
  HX_INLINE static void PrepareByteX(const int8_t* codes, ByteX& x) {
    x = codes;
  }
  using ByteW = int8x16_t;
  HX_INLINE static ByteW SplitBytes(W w) {
    return vreinterpretq_s8_u8(veorq_u8(w, vdupq_n_u8(0x80)));
  }

 protected:
  HX_INLINE static int32_t LoadFour(const int8_t* p) {
    int32_t four;
    memcpy(&four, p, sizeof(four));
    return four;
  }
};

struct DotsNeon : DotsNeonRegisters {
  // --- Nibbles: one block, in 16 bits: 8 products of 15 and 127. Rows 0 and 1
  // (four sums each, by k % 4), then rows 2 and 3.
  struct NibbleSum {
    int16x8_t low, high;
  };
  HX_INLINE static NibbleSum StartNibbles() {
    return {vdupq_n_s16(0), vdupq_n_s16(0)};
  }
  HX_INLINE static void AddNibbles(NibbleSum& sum, W w, NibbleX x, int group) {
    const int8x8_t four = SetFour(x + 4 * group);
    const int8x16_t codes = vreinterpretq_s8_u8(w);
    sum.low = vmlal_s8(sum.low, vget_low_s8(codes), four);
    sum.high = vmlal_s8(sum.high, vget_high_s8(codes), four);
  }
  HX_INLINE static I TotalNibbles(const NibbleSum& sum) {
    return vpaddq_s32(vpaddlq_s16(sum.low), vpaddlq_s16(sum.high));
  }

  // --- Bytes: two sums per row in 32 bits; a product of -128 and -128 fits in
  // 16 bits, two of them do not.
  struct ByteSum {
    int32x4_t low, high;
  };
  HX_INLINE static ByteSum StartBytes(int32_t) {
    return {vdupq_n_s32(0), vdupq_n_s32(0)};
  }
  HX_INLINE static void AddBytes(ByteSum& sum, ByteW w, ByteX x, int group) {
    const int8x8_t four = SetFour(x + 4 * group);
    sum.low = vpadalq_s16(sum.low, vmull_s8(vget_low_s8(w), four));
    sum.high = vpadalq_s16(sum.high, vmull_s8(vget_high_s8(w), four));
  }
  HX_INLINE static I TotalBytes(const ByteSum& sum) {
    return vpaddq_s32(sum.low, sum.high);
  }

  // --- Tile sizes (32 registers): three per row and four weight rows.
  static constexpr int kTileRows = 4;
  static constexpr int kTileVecs = 2;

 private:
  HX_INLINE static int8x8_t SetFour(const int8_t* p) {
    return vreinterpret_s8_s32(vdup_n_s32(LoadFour(p)));
  }
};

}  // namespace
}  // namespace hexllm::cpu

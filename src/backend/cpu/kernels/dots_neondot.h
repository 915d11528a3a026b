// The abstraction of integer dot products (dots_body.h) on NEON with the dot
// product instructions of Armv8.2: sdot adds to four sums of 32 bits the
// products of four signed bytes each. Names as in DotsAvx512.
// Include only in files compiled with the flags of neondot (flags.cmake).
#pragma once

#include "backend/cpu/kernels/dots_neon.h"

namespace hexllm::cpu {
namespace {

struct DotsNeonDot : DotsNeonRegisters {
  using NibbleSum = int32x4_t;
  HX_INLINE static NibbleSum StartNibbles() { return vdupq_n_s32(0); }
  HX_INLINE static void AddNibbles(NibbleSum& sum, W w, NibbleX x, int group) {
    sum = vdotq_s32(sum, vreinterpretq_s8_u8(w), SetFour(x + 4 * group));
  }
  HX_INLINE static I TotalNibbles(NibbleSum sum) { return sum; }

  using ByteSum = int32x4_t;
  HX_INLINE static ByteSum StartBytes(int32_t) { return vdupq_n_s32(0); }
  HX_INLINE static void AddBytes(ByteSum& sum, ByteW w, ByteX x, int group) {
    sum = vdotq_s32(sum, w, SetFour(x + 4 * group));
  }
  HX_INLINE static I TotalBytes(ByteSum sum) { return sum; }

  // --- Tile sizes (32 registers): two per row and four weight rows.
  static constexpr int kTileRows = 6;
  static constexpr int kTileVecs = 2;

 private:
  HX_INLINE static int8x16_t SetFour(const int8_t* p) {
    return vreinterpretq_s8_s32(vdupq_n_s32(LoadFour(p)));
  }
};

}  // namespace
}  // namespace hexllm::cpu

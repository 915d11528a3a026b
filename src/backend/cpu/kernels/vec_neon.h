// The vector abstraction of kernels on Armv8 NEON: 16 lanes in four registers.
// Names and contracts as in VecAvx512 (vec_avx512.h).
#pragma once

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

struct VecNeon {
  // --- F: 16 floats; I: 16 integers.
  struct F {
    float32x4_t v[4];
  };
  struct I {
    int32x4_t v[4];
  };

  HX_INLINE static F Set(float value) {
    const float32x4_t v = vdupq_n_f32(value);
    return {v, v, v, v};
  }
  HX_INLINE static F Add(F a, F b) {
    return Map([&](int i) { return vaddq_f32(a.v[i], b.v[i]); });
  }
  HX_INLINE static F Sub(F a, F b) {
    return Map([&](int i) { return vsubq_f32(a.v[i], b.v[i]); });
  }
  HX_INLINE static F Mul(F a, F b) {
    return Map([&](int i) { return vmulq_f32(a.v[i], b.v[i]); });
  }
  HX_INLINE static F Div(F a, F b) {
    return Map([&](int i) { return vdivq_f32(a.v[i], b.v[i]); });
  }
  HX_INLINE static F Fma(F a, F b, F c) {
    return Map([&](int i) { return vfmaq_f32(c.v[i], a.v[i], b.v[i]); });
  }
  // Not vminq and vmaxq: those return NaN when either operand is NaN.
  HX_INLINE static F Min(F a, F b) { return IfLess(a, b, a, b); }
  HX_INLINE static F Max(F a, F b) { return IfLess(b, a, a, b); }
  HX_INLINE static F Abs(F a) {
    return Map([&](int i) { return vabsq_f32(a.v[i]); });
  }
  HX_INLINE static F Negate(F a) {
    return Map([&](int i) { return vnegq_f32(a.v[i]); });
  }
  HX_INLINE static F CopySign(F magnitude, F sign) {
    const uint32x4_t sign_bits = vdupq_n_u32(0x80000000u);
    return Map(
        [&](int i) { return vbslq_f32(sign_bits, sign.v[i], magnitude.v[i]); });
  }
  HX_INLINE static F IfLess(F a, F b, F then, F otherwise) {
    return Map([&](int i) {
      return vbslq_f32(vcltq_f32(a.v[i], b.v[i]), then.v[i], otherwise.v[i]);
    });
  }
  HX_INLINE static F RoundEven(F a) {
    return Map([&](int i) { return vrndnq_f32(a.v[i]); });
  }
  HX_INLINE static F RoundToHalf(F a) {
    return Map([&](int i) { return vcvt_f32_f16(vcvt_f16_f32(a.v[i])); });
  }

  HX_INLINE static I SetInt(int32_t value) {
    const int32x4_t v = vdupq_n_s32(value);
    return {v, v, v, v};
  }
  HX_INLINE static I AddInt(I a, I b) {
    return MapInt([&](int i) { return vaddq_s32(a.v[i], b.v[i]); });
  }
  HX_INLINE static I SubInt(I a, I b) {
    return MapInt([&](int i) { return vsubq_s32(a.v[i], b.v[i]); });
  }
  template <int kBits>
  HX_INLINE static I ShiftLeft(I a) {
    return MapInt([&](int i) { return vshlq_n_s32(a.v[i], kBits); });
  }
  template <int kBits>
  HX_INLINE static I ShiftRightSigned(I a) {
    return MapInt([&](int i) { return vshrq_n_s32(a.v[i], kBits); });
  }
  HX_INLINE static I Bits(F a) {
    return MapInt([&](int i) { return vreinterpretq_s32_f32(a.v[i]); });
  }
  HX_INLINE static F FromBits(I a) {
    return Map([&](int i) { return vreinterpretq_f32_s32(a.v[i]); });
  }

  // --- Memory.
  HX_INLINE static F Load(const float* p) {
    return Map([&](int i) { return vld1q_f32(p + 4 * i); });
  }
  HX_INLINE static void Store(float* p, F a) {
    for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, a.v[i]);
  }
  HX_INLINE static F LoadPartial(const float* p, int64_t n) {
    float all[16] = {};
    for (int64_t i = 0; i < n; ++i) all[i] = p[i];
    return Load(all);
  }
  HX_INLINE static void StorePartial(float* p, F a, int64_t n) {
    float all[16];
    Store(all, a);
    for (int64_t i = 0; i < n; ++i) p[i] = all[i];
  }
  HX_INLINE static void StoreInt8(int8_t* p, F a) {
    const auto narrow = [&](int i) { return vmovn_s32(vcvtq_s32_f32(a.v[i])); };
    vst1q_s8(p, vcombine_s8(vmovn_s16(vcombine_s16(narrow(0), narrow(1))),
                            vmovn_s16(vcombine_s16(narrow(2), narrow(3)))));
  }
  HX_INLINE static F LoadF16(const uint8_t* p) {
    return Map([&](int i) {
      return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p + 8 * i)));
    });
  }
  HX_INLINE static F LoadBF16(const uint8_t* p) {
    return Map([&](int i) {
      const uint16x4_t bits = vreinterpret_u16_u8(vld1_u8(p + 8 * i));
      return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
    });
  }
  HX_INLINE static float HalfToFloat(const uint8_t* p) {
    uint16_t bits;
    memcpy(&bits, p, sizeof(bits));
    const float16x4_t half = vreinterpret_f16_u16(vdup_n_u16(bits));
    return vgetq_lane_f32(vcvt_f32_f16(half), 0);
  }
  HX_INLINE static void LoadHalfPairs(const uint8_t* const* rows,
                                      int64_t offset, float* out) {
    for (int i = 0; i < 4; i += 2) {
      uint32_t pairs[2];
      memcpy(&pairs[0], rows[i] + offset, sizeof(pairs[0]));
      memcpy(&pairs[1], rows[i + 1] + offset, sizeof(pairs[1]));
      const float16x4_t halves = vreinterpret_f16_u32(vld1_u32(pairs));
      vst1q_f32(out + 2 * i, vcvt_f32_f16(halves));
    }
  }

  // --- Across lanes.
  HX_INLINE static float AddLanes(F a) {
    const float32x4_t four = AddToFour(a);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  HX_INLINE static void AddLanes4(const F (&a)[4], float* out) {
    for (int i = 0; i < 4; ++i) out[i] = AddLanes(a[i]);
  }
  HX_INLINE static float MaxLanes(F a) {
    float all[16];
    Store(all, a);
    float max = all[0];
    for (int i = 1; i < 16; ++i) max = all[i] > max ? all[i] : max;
    return max;
  }
  HX_INLINE static uint32_t NotEqual(F a, F b) {
    const int32x4_t shifts = {0, 1, 2, 3};
    uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t differs = vmvnq_u32(vceqq_f32(a.v[i], b.v[i]));
      const uint32x4_t one = vandq_u32(differs, vdupq_n_u32(1));
      bits |= vaddvq_u32(vshlq_u32(one, shifts)) << (4 * i);
    }
    return bits;
  }

  // --- B: 16 bytes, for packed weights.
  using B = uint8x16_t;
  HX_INLINE static B LoadBytes(const uint8_t* p) { return vld1q_u8(p); }
  HX_INLINE static B SetBytes(int value) {
    return vdupq_n_u8(static_cast<uint8_t>(value));
  }
  HX_INLINE static B AndBytes(B a, B b) { return vandq_u8(a, b); }
  HX_INLINE static B OrBytes(B a, B b) { return vorrq_u8(a, b); }
  HX_INLINE static B SubBytes(B a, B b) { return vsubq_u8(a, b); }
  HX_INLINE static B Field(B a, int shift, int mask) {
    const int8x16_t right = vdupq_n_s8(static_cast<int8_t>(-shift));
    return AndBytes(vshlq_u8(a, right), SetBytes(mask));
  }
  HX_INLINE static B Raise(B a, int shift) {
    return vshlq_u8(a, vdupq_n_s8(static_cast<int8_t>(shift)));
  }
  HX_INLINE static B SpreadBits(uint16_t bits, int value) {
    const uint8x8_t bit = vcreate_u8(0x8040201008040201);
    const uint8x16_t spread =
        vcombine_u8(vdup_n_u8(static_cast<uint8_t>(bits)),
                    vdup_n_u8(static_cast<uint8_t>(bits >> 8)));
    return AndBytes(vtstq_u8(spread, vcombine_u8(bit, bit)), SetBytes(value));
  }
  HX_INLINE static F FromUnsigned(B a) {
    const uint16x8_t lo = vmovl_u8(vget_low_u8(a));
    const uint16x8_t hi = vmovl_u8(vget_high_u8(a));
    return {vcvtq_f32_u32(vmovl_u16(vget_low_u16(lo))),
            vcvtq_f32_u32(vmovl_u16(vget_high_u16(lo))),
            vcvtq_f32_u32(vmovl_u16(vget_low_u16(hi))),
            vcvtq_f32_u32(vmovl_u16(vget_high_u16(hi)))};
  }
  HX_INLINE static F FromSigned(B a) {
    const int8x16_t bytes = vreinterpretq_s8_u8(a);
    const int16x8_t lo = vmovl_s8(vget_low_s8(bytes));
    const int16x8_t hi = vmovl_s8(vget_high_s8(bytes));
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(lo))),
            vcvtq_f32_s32(vmovl_s16(vget_high_s16(lo))),
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(hi))),
            vcvtq_f32_s32(vmovl_s16(vget_high_s16(hi)))};
  }
  template <class Function>
  HX_INLINE static void MapNibbles(const uint8_t* qs, Function value, F* out) {
    const B packed = LoadBytes(qs);
    out[0] = value(FromUnsigned(Field(packed, 0, 15)));
    out[1] = value(FromUnsigned(Field(packed, 4, 15)));
  }

  // --- N: one register.
  using N = float32x4_t;
  static constexpr int kNative = 4;
  HX_INLINE static N NativeSet(float value) { return vdupq_n_f32(value); }
  HX_INLINE static N NativeLoad(const float* p) { return vld1q_f32(p); }
  HX_INLINE static N NativeLoadPartial(const float* p, int64_t n) {
    float all[4] = {};
    for (int64_t i = 0; i < (n < 4 ? n : 4); ++i) all[i] = p[i];
    return vld1q_f32(all);
  }
  HX_INLINE static void NativeStore(float* p, N a) { vst1q_f32(p, a); }
  HX_INLINE static void NativeStorePartial(float* p, N a, int64_t n) {
    float all[4];
    vst1q_f32(all, a);
    for (int64_t i = 0; i < (n < 4 ? n : 4); ++i) p[i] = all[i];
  }
  HX_INLINE static N NativeFma(N a, N b, N c) { return vfmaq_f32(c, a, b); }
  HX_INLINE static N NativeAdd(N a, N b) { return vaddq_f32(a, b); }
  HX_INLINE static void NativeTranspose4(const float* from, int64_t from_stride,
                                         float* to, int64_t to_stride) {
    const float32x4x2_t ac =
        vzipq_f32(vld1q_f32(from), vld1q_f32(from + 2 * from_stride));
    const float32x4x2_t bd = vzipq_f32(vld1q_f32(from + from_stride),
                                       vld1q_f32(from + 3 * from_stride));
    const float32x4x2_t low = vzipq_f32(ac.val[0], bd.val[0]);
    const float32x4x2_t high = vzipq_f32(ac.val[1], bd.val[1]);
    NativeStore(to, low.val[0]);
    NativeStore(to + to_stride, low.val[1]);
    NativeStore(to + 2 * to_stride, high.val[0]);
    NativeStore(to + 3 * to_stride, high.val[1]);
  }
  HX_INLINE static void Pin(N& a) { __asm__("" : "+w"(a)); }

  // --- D: one register of doubles.
  using D = float64x2_t;
  static constexpr int kDoubles = 2;
  HX_INLINE static D DoubleSet(double value) { return vdupq_n_f64(value); }
  HX_INLINE static D DoubleLoad(const double* p) { return vld1q_f64(p); }
  HX_INLINE static void DoubleStore(double* p, D a) { vst1q_f64(p, a); }
  HX_INLINE static D DoubleMul(D a, D b) { return vmulq_f64(a, b); }
  HX_INLINE static D DoubleFma(D a, D b, D c) { return vfmaq_f64(c, a, b); }
  HX_INLINE static D DoubleFloor(D a) { return vrndmq_f64(a); }
  HX_INLINE static void StoreRounded(float* p, D a) {
    vst1_f32(p, vcvt_f32_f64(a));
  }
  HX_INLINE static void StoreWidened(double* p, F a) {
    for (int i = 0; i < 4; ++i) {
      vst1q_f64(p + 4 * i, vcvt_f64_f32(vget_low_f32(a.v[i])));
      vst1q_f64(p + 4 * i + 2, vcvt_high_f64_f32(a.v[i]));
    }
  }

  // --- Tile sizes (32 registers).
  static constexpr int kTileRows = 6;
  static constexpr int kTileVecs = 4;
  static constexpr int DirectWeights(int rows) {
    return rows == 1 ? 4 : rows == 2 ? 2 : 1;
  }
  static constexpr int ScoreVecs(int group) { return group == 1 ? 8 : 4; }
  static constexpr int kValueVecs = 4;
  static constexpr int kDoubleRows = 6;
  static constexpr int kDoubleVecs = 4;

 private:
  template <class Function>
  HX_INLINE static F Map(Function function) {
    return {function(0), function(1), function(2), function(3)};
  }
  template <class Function>
  HX_INLINE static I MapInt(Function function) {
    return {function(0), function(1), function(2), function(3)};
  }
  HX_INLINE static float32x4_t AddToFour(F a) {
    return vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
  }
};

}  // namespace
}  // namespace hexllm::cpu

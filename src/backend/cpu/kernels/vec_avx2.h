// The vector abstraction of kernels on AVX2 with FMA and F16C: 16 lanes in two
// registers. Names and contracts as in VecAvx512 (vec_avx512.h).
// Include only in files compiled with the flags of avx2 (flags.cmake).
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

struct VecAvx2 {
  // --- F: 16 floats; I: 16 integers.
  struct F {
    __m256 lo, hi;
  };
  struct I {
    __m256i lo, hi;
  };

  HX_INLINE static F Set(float value) {
    return {_mm256_set1_ps(value), _mm256_set1_ps(value)};
  }
  HX_INLINE static F Add(F a, F b) {
    return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
  }
  HX_INLINE static F Sub(F a, F b) {
    return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
  }
  HX_INLINE static F Mul(F a, F b) {
    return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
  }
  HX_INLINE static F Div(F a, F b) {
    return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
  }
  HX_INLINE static F Fma(F a, F b, F c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo),
            _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  HX_INLINE static F Min(F a, F b) {
    return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
  }
  HX_INLINE static F Max(F a, F b) {
    return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
  }
  HX_INLINE static F Abs(F a) {
    return {_mm256_andnot_ps(SignBits(), a.lo),
            _mm256_andnot_ps(SignBits(), a.hi)};
  }
  HX_INLINE static F Negate(F a) {
    return {_mm256_xor_ps(SignBits(), a.lo), _mm256_xor_ps(SignBits(), a.hi)};
  }
  HX_INLINE static F CopySign(F magnitude, F sign) {
    const F m = Abs(magnitude);
    return {_mm256_or_ps(m.lo, _mm256_and_ps(SignBits(), sign.lo)),
            _mm256_or_ps(m.hi, _mm256_and_ps(SignBits(), sign.hi))};
  }
  HX_INLINE static F IfLess(F a, F b, F then, F otherwise) {
    const __m256 lo = _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ);
    const __m256 hi = _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ);
    return {_mm256_blendv_ps(otherwise.lo, then.lo, lo),
            _mm256_blendv_ps(otherwise.hi, then.hi, hi)};
  }
  HX_INLINE static F RoundEven(F a) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(a.lo, kMode), _mm256_round_ps(a.hi, kMode)};
  }
  HX_INLINE static F RoundToHalf(F a) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT;
    return {_mm256_cvtph_ps(_mm256_cvtps_ph(a.lo, kMode)),
            _mm256_cvtph_ps(_mm256_cvtps_ph(a.hi, kMode))};
  }

  HX_INLINE static I SetInt(int32_t value) {
    return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
  }
  HX_INLINE static I AddInt(I a, I b) {
    return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
  }
  HX_INLINE static I SubInt(I a, I b) {
    return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
  }
  template <int kBits>
  HX_INLINE static I ShiftLeft(I a) {
    return {_mm256_slli_epi32(a.lo, kBits), _mm256_slli_epi32(a.hi, kBits)};
  }
  template <int kBits>
  HX_INLINE static I ShiftRightSigned(I a) {
    return {_mm256_srai_epi32(a.lo, kBits), _mm256_srai_epi32(a.hi, kBits)};
  }
  HX_INLINE static I Bits(F a) {
    return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
  }
  HX_INLINE static F FromBits(I a) {
    return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)};
  }

  // --- Memory.
  HX_INLINE static F Load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  HX_INLINE static void Store(float* p, F a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
  }
  HX_INLINE static F LoadPartial(const float* p, int64_t n) {
    return {NativeLoadPartial(p, n), NativeLoadPartial(p + 8, n - 8)};
  }
  HX_INLINE static void StorePartial(float* p, F a, int64_t n) {
    NativeStorePartial(p, a.lo, n);
    NativeStorePartial(p + 8, a.hi, n - 8);
  }
  HX_INLINE static void StoreInt8(int8_t* p, F a) {
    const __m256i pairs =
        _mm256_packs_epi32(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi));
    // Lanes of 128 bits were packed apart: lo0 hi0 lo1 hi1.
    const __m256i all = _mm256_permute4x64_epi64(pairs, 0xd8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm_packs_epi16(_mm256_castsi256_si128(all),
                                     _mm256_extracti128_si256(all, 1)));
  }
  HX_INLINE static F LoadF16(const uint8_t* p) {
    return {_mm256_cvtph_ps(LoadBytes(p)), _mm256_cvtph_ps(LoadBytes(p + 16))};
  }
  HX_INLINE static F LoadBF16(const uint8_t* p) {
    return FromBits(ShiftLeft<16>({_mm256_cvtepu16_epi32(LoadBytes(p)),
                                   _mm256_cvtepu16_epi32(LoadBytes(p + 16))}));
  }
  HX_INLINE static float HalfToFloat(const uint8_t* p) {
    uint16_t bits;
    memcpy(&bits, p, sizeof(bits));
    return _cvtsh_ss(bits);
  }
  HX_INLINE static void LoadHalfPairs(const uint8_t* const* rows,
                                      int64_t offset, float* out) {
    const auto pair = [&](int i) {
      int32_t bits;
      memcpy(&bits, rows[i] + offset, sizeof(bits));
      return bits;
    };
    const __m128i halves = _mm_setr_epi32(pair(0), pair(1), pair(2), pair(3));
    _mm256_store_ps(out, _mm256_cvtph_ps(halves));
    // Opaque to the compiler: broadcasts from memory are cheaper.
    __asm__("" : "+m"(*reinterpret_cast<float(*)[8]>(out)));
  }

  // --- Across lanes.
  HX_INLINE static float AddLanes(F a) {
    const __m256 eight = _mm256_add_ps(a.lo, a.hi);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                   _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  HX_INLINE static void AddLanes4(const F (&a)[4], float* out) {
    const __m256 ab = AddHalves(_mm256_add_ps(a[0].lo, a[0].hi),
                                _mm256_add_ps(a[1].lo, a[1].hi));
    const __m256 cd = AddHalves(_mm256_add_ps(a[2].lo, a[2].hi),
                                _mm256_add_ps(a[3].lo, a[3].hi));
    // Two lanes each of a, c (low half) and b, d (high half), then one.
    const __m256 two = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44),
                                     _mm256_shuffle_ps(ab, cd, 0xee));
    const __m256 one = _mm256_add_ps(_mm256_shuffle_ps(two, two, 0x88),
                                     _mm256_shuffle_ps(two, two, 0xdd));
    _mm_storeu_ps(out, _mm_unpacklo_ps(_mm256_castps256_ps128(one),
                                       _mm256_extractf128_ps(one, 1)));
  }
  HX_INLINE static float MaxLanes(F a) {
    const __m256 eight = _mm256_max_ps(a.lo, a.hi);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight),
                                   _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  HX_INLINE static uint32_t NotEqual(F a, F b) {
    const int lo = _mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_NEQ_UQ));
    const int hi = _mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_NEQ_UQ));
    return static_cast<uint32_t>(lo | hi << 8);
  }

  // --- B: 16 bytes, for packed weights.
  using B = __m128i;
  HX_INLINE static B LoadBytes(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const B*>(p));
  }
  HX_INLINE static B SetBytes(int value) {
    return _mm_set1_epi8(static_cast<char>(value));
  }
  HX_INLINE static B AndBytes(B a, B b) { return _mm_and_si128(a, b); }
  HX_INLINE static B OrBytes(B a, B b) { return _mm_or_si128(a, b); }
  HX_INLINE static B SubBytes(B a, B b) { return _mm_sub_epi8(a, b); }
  HX_INLINE static B Field(B a, int shift, int mask) {
    return AndBytes(_mm_srli_epi16(a, shift), SetBytes(mask));
  }
  HX_INLINE static B Raise(B a, int shift) { return _mm_slli_epi16(a, shift); }
  HX_INLINE static B SpreadBits(uint16_t bits, int value) {
    // Byte 0 of `bits` to bytes 0-7, byte 1 to bytes 8-15; then test bit i % 8.
    const B spread = _mm_shuffle_epi8(_mm_cvtsi32_si128(bits),
                                      _mm_set_epi64x(0x0101010101010101, 0));
    const B bit = _mm_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
    return AndBytes(_mm_cmpeq_epi8(AndBytes(spread, bit), bit),
                    SetBytes(value));
  }
  HX_INLINE static F FromUnsigned(B a) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(a)),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(a, 8)))};
  }
  HX_INLINE static F FromSigned(B a) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(a)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(a, 8)))};
  }
  template <class Function>
  HX_INLINE static void MapNibbles(const uint8_t* qs, Function value, F* out) {
    const B packed = LoadBytes(qs);
    out[0] = value(FromUnsigned(Field(packed, 0, 15)));
    out[1] = value(FromUnsigned(Field(packed, 4, 15)));
  }

  // --- N: one register.
  using N = __m256;
  static constexpr int kNative = 8;
  HX_INLINE static N NativeSet(float value) { return _mm256_set1_ps(value); }
  HX_INLINE static N NativeLoad(const float* p) { return _mm256_loadu_ps(p); }
  HX_INLINE static N NativeLoadPartial(const float* p, int64_t n) {
    return _mm256_maskload_ps(p, First(n));
  }
  HX_INLINE static void NativeStore(float* p, N a) { _mm256_storeu_ps(p, a); }
  // A masked store takes tens of cycles on AMD's cores: only where needed.
  HX_INLINE static void NativeStorePartial(float* p, N a, int64_t n) {
    if (n >= 8) return NativeStore(p, a);
    _mm256_maskstore_ps(p, First(n), a);
  }
  HX_INLINE static N NativeFma(N a, N b, N c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  HX_INLINE static N NativeAdd(N a, N b) { return _mm256_add_ps(a, b); }
  HX_INLINE static void NativeTranspose4(const float* from, int64_t from_stride,
                                         float* to, int64_t to_stride) {
    const auto rows = [&](int i) {
      const float* at = from + i * from_stride;
      return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at)),
                                  _mm_loadu_ps(at + 4 * from_stride), 1);
    };
    const N a = rows(0), b = rows(1), c = rows(2), d = rows(3);
    const N ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);
    NativeStore(to, _mm256_shuffle_ps(ab, cd, 0x44));
    NativeStore(to + to_stride, _mm256_shuffle_ps(ab, cd, 0xee));
    const N ab2 = _mm256_unpackhi_ps(a, b), cd2 = _mm256_unpackhi_ps(c, d);
    NativeStore(to + 2 * to_stride, _mm256_shuffle_ps(ab2, cd2, 0x44));
    NativeStore(to + 3 * to_stride, _mm256_shuffle_ps(ab2, cd2, 0xee));
  }
  HX_INLINE static void Pin(N& a) { __asm__("" : "+x"(a)); }

  // --- D: one register of doubles.
  using D = __m256d;
  static constexpr int kDoubles = 4;
  HX_INLINE static D DoubleSet(double value) { return _mm256_set1_pd(value); }
  HX_INLINE static D DoubleLoad(const double* p) { return _mm256_loadu_pd(p); }
  HX_INLINE static void DoubleStore(double* p, D a) { _mm256_storeu_pd(p, a); }
  HX_INLINE static D DoubleMul(D a, D b) { return _mm256_mul_pd(a, b); }
  HX_INLINE static D DoubleFma(D a, D b, D c) {
    return _mm256_fmadd_pd(a, b, c);
  }
  HX_INLINE static D DoubleFloor(D a) { return _mm256_floor_pd(a); }
  HX_INLINE static void StoreRounded(float* p, D a) {
    _mm_storeu_ps(p, _mm256_cvtpd_ps(a));
  }
  HX_INLINE static void StoreWidened(double* p, F a) {
    _mm256_storeu_pd(p, _mm256_cvtps_pd(_mm256_castps256_ps128(a.lo)));
    _mm256_storeu_pd(p + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(a.lo, 1)));
    _mm256_storeu_pd(p + 8, _mm256_cvtps_pd(_mm256_castps256_ps128(a.hi)));
    _mm256_storeu_pd(p + 12, _mm256_cvtps_pd(_mm256_extractf128_ps(a.hi, 1)));
  }

  // --- Tile sizes (16 registers).
  static constexpr int kTileRows = 6;
  static constexpr int kTileVecs = 2;
  static constexpr int DirectWeights(int rows) {
    return rows == 1 ? 4 : rows == 4 ? 1 : 2;
  }
  static constexpr int ScoreVecs(int group) { return group == 1 ? 8 : 2; }
  static constexpr int kValueVecs = 2;
  static constexpr int kDoubleRows = 6;
  static constexpr int kDoubleVecs = 2;

 private:
  HX_INLINE static __m256 SignBits() { return _mm256_set1_ps(-0.0f); }
  // All ones in the first n lanes; n may be outside [0, 8].
  HX_INLINE static __m256i First(int64_t n) {
    const int32_t count = static_cast<int32_t>(n < 0 ? 0 : n > 8 ? 8 : n);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  // [a(l) + a(l + 4) | b(l) + b(l + 4)].
  HX_INLINE static __m256 AddHalves(__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20),
                         _mm256_permute2f128_ps(a, b, 0x31));
  }
};

}  // namespace
}  // namespace hexllm::cpu

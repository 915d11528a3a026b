// The vector abstraction of kernels on AVX-512 (F, BW, VL, DQ). Names as in
// VecScalar; what it lacks is told here, once for all instruction sets.
// Include only in files compiled with the flags of avx512 (flags.cmake).
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

struct VecAvx512 {
  // --- F: 16 floats; I: 16 integers.
  using F = __m512;
  using I = __m512i;

  HX_INLINE static F Set(float value) { return _mm512_set1_ps(value); }
  HX_INLINE static F Add(F a, F b) { return _mm512_add_ps(a, b); }
  HX_INLINE static F Sub(F a, F b) { return _mm512_sub_ps(a, b); }
  HX_INLINE static F Mul(F a, F b) { return _mm512_mul_ps(a, b); }
  HX_INLINE static F Div(F a, F b) { return _mm512_div_ps(a, b); }
  HX_INLINE static F Fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  HX_INLINE static F Min(F a, F b) { return _mm512_min_ps(a, b); }
  HX_INLINE static F Max(F a, F b) { return _mm512_max_ps(a, b); }
  HX_INLINE static F Abs(F a) { return _mm512_andnot_ps(SignBits(), a); }
  HX_INLINE static F Negate(F a) { return _mm512_xor_ps(SignBits(), a); }
  HX_INLINE static F CopySign(F magnitude, F sign) {
    return _mm512_or_ps(Abs(magnitude), _mm512_and_ps(SignBits(), sign));
  }
  HX_INLINE static F IfLess(F a, F b, F then, F otherwise) {
    const __mmask16 less = _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
    return _mm512_mask_blend_ps(less, otherwise, then);
  }

  // To the nearest whole number, half to even.
  HX_INLINE static F RoundEven(F a) {
    return _mm512_roundscale_ps(a,
                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // To half precision and back.
  HX_INLINE static F RoundToHalf(F a) {
    return _mm512_cvtph_ps(_mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }

  HX_INLINE static I SetInt(int32_t value) { return _mm512_set1_epi32(value); }
  HX_INLINE static I AddInt(I a, I b) { return _mm512_add_epi32(a, b); }
  HX_INLINE static I SubInt(I a, I b) { return _mm512_sub_epi32(a, b); }
  template <int kBits>
  HX_INLINE static I ShiftLeft(I a) {
    return _mm512_slli_epi32(a, kBits);
  }
  template <int kBits>
  HX_INLINE static I ShiftRightSigned(I a) {
    return _mm512_srai_epi32(a, kBits);
  }
  HX_INLINE static I Bits(F a) { return _mm512_castps_si512(a); }
  HX_INLINE static F FromBits(I a) { return _mm512_castsi512_ps(a); }

  // --- Memory; nothing needs alignment.
  HX_INLINE static F Load(const float* p) { return _mm512_loadu_ps(p); }
  HX_INLINE static void Store(float* p, F a) { _mm512_storeu_ps(p, a); }
  // The first n of 16 elements; the others read as zero and are not touched.
  HX_INLINE static F LoadPartial(const float* p, int64_t n) {
    return _mm512_maskz_loadu_ps(First(n), p);
  }
  HX_INLINE static void StorePartial(float* p, F a, int64_t n) {
    _mm512_mask_storeu_ps(p, First(n), a);
  }
  // 16 whole numbers from -128 to 127.
  HX_INLINE static void StoreInt8(int8_t* p, F a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a)));
  }
  // 16 stored half or bfloat16 numbers.
  HX_INLINE static F LoadF16(const uint8_t* p) {
    return _mm512_cvtph_ps(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  HX_INLINE static F LoadBF16(const uint8_t* p) {
    const __m256i bits =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return FromBits(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  // One stored half.
  HX_INLINE static float HalfToFloat(const uint8_t* p) {
    uint16_t bits;
    memcpy(&bits, p, sizeof(bits));
    return _cvtsh_ss(bits);
  }
  // The two halves stored at `offset` of each of four rows.
  HX_INLINE static void LoadHalfPairs(const uint8_t* const* rows,
                                      int64_t offset, float* out) {
    const auto pair = [&](int i) {
      int32_t bits;
      memcpy(&bits, rows[i] + offset, sizeof(bits));
      return bits;
    };
    const __m128i halves = _mm_setr_epi32(pair(0), pair(1), pair(2), pair(3));
    _mm256_store_ps(out, _mm256_cvtph_ps(halves));
    // Opaque to the compiler, or it would broadcast from the register by
    // shuffles, whose port is the bottleneck; from memory it costs a load.
    __asm__("" : "+m"(*reinterpret_cast<float(*)[8]>(out)));
  }

  // --- Across lanes.
  // The sum in the tree of the reduction order.
  HX_INLINE static float AddLanes(F a) {
    const __m256 eight =
        _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                   _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  // Four such sums.
  HX_INLINE static void AddLanes4(const F (&a)[4], float* out) {
    const F ab = _mm512_add_ps(_mm512_shuffle_f32x4(a[0], a[1], 0x44),
                               _mm512_shuffle_f32x4(a[0], a[1], 0xee));
    const F cd = _mm512_add_ps(_mm512_shuffle_f32x4(a[2], a[3], 0x44),
                               _mm512_shuffle_f32x4(a[2], a[3], 0xee));
    const F four = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88),
                                 _mm512_shuffle_f32x4(ab, cd, 0xdd));
    const F two = _mm512_add_ps(four, _mm512_shuffle_ps(four, four, 0x4e));
    const F one = _mm512_add_ps(two, _mm512_shuffle_ps(two, two, 0xb1));
    const F sums = _mm512_maskz_compress_ps(0x1111, one);
    _mm_storeu_ps(out, _mm512_castps512_ps128(sums));
  }
  HX_INLINE static float MaxLanes(F a) { return _mm512_reduce_max_ps(a); }
  // Bit l is set where a[l] != b[l].
  HX_INLINE static uint32_t NotEqual(F a, F b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ);
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
  // (a >> shift) & mask in each byte, for a mask without the top `shift` bits.
  HX_INLINE static B Field(B a, int shift, int mask) {
    return AndBytes(_mm_srli_epi16(a, shift), SetBytes(mask));
  }
  // a << shift in each byte, where no bit leaves its byte.
  HX_INLINE static B Raise(B a, int shift) { return _mm_slli_epi16(a, shift); }
  // Byte i = `value` where bit i of `bits` is set, else 0.
  HX_INLINE static B SpreadBits(uint16_t bits, int value) {
    return _mm_maskz_set1_epi8(bits, static_cast<char>(value));
  }
  HX_INLINE static F FromUnsigned(B a) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(a));
  }
  HX_INLINE static F FromSigned(B a) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(a));
  }
  // The vectors of the low and the high nibbles of 16 bytes, through `value`: a
  // function of nibbles as floats. Here it is called once, for all 16 of them.
  template <class Function>
  HX_INLINE static void MapNibbles(const uint8_t* qs, Function value, F* out) {
    const F table = value(
        _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    // Lookups ignore all but the low four bits of an index.
    const __m512i index = _mm512_cvtepu8_epi32(LoadBytes(qs));
    out[0] = _mm512_permutexvar_ps(index, table);
    out[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(index, 4), table);
  }

  // --- N: one register of kNative floats, for register-tiled loops.
  using N = __m512;
  static constexpr int kNative = 16;
  HX_INLINE static N NativeSet(float value) { return _mm512_set1_ps(value); }
  HX_INLINE static N NativeLoad(const float* p) { return _mm512_loadu_ps(p); }
  // The first n elements, the others zero; n may be outside [0, kNative].
  HX_INLINE static N NativeLoadPartial(const float* p, int64_t n) {
    return _mm512_maskz_loadu_ps(First(n < 0 ? 0 : n > 16 ? 16 : n), p);
  }
  HX_INLINE static void NativeStore(float* p, N a) { _mm512_storeu_ps(p, a); }
  HX_INLINE static void NativeStorePartial(float* p, N a, int64_t n) {
    _mm512_mask_storeu_ps(p, First(n < 0 ? 0 : n > 16 ? 16 : n), a);
  }
  HX_INLINE static N NativeFma(N a, N b, N c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  HX_INLINE static N NativeAdd(N a, N b) { return _mm512_add_ps(a, b); }
  // to[c, r] = from[r, c] for kNative rows r and 4 columns c.
  HX_INLINE static void NativeTranspose4(const float* from, int64_t from_stride,
                                         float* to, int64_t to_stride) {
    const auto rows = [&](int i) {
      const auto four = [&](int r) {
        return _mm_loadu_ps(from + (i + r) * from_stride);
      };
      const N two =
          _mm512_insertf32x4(_mm512_castps128_ps512(four(0)), four(4), 1);
      return _mm512_insertf32x4(_mm512_insertf32x4(two, four(8), 2), four(12),
                                3);
    };
    const N a = rows(0), b = rows(1), c = rows(2), d = rows(3);
    const N ab = _mm512_unpacklo_ps(a, b), cd = _mm512_unpacklo_ps(c, d);
    NativeStore(to, _mm512_shuffle_ps(ab, cd, 0x44));
    NativeStore(to + to_stride, _mm512_shuffle_ps(ab, cd, 0xee));
    const N ab2 = _mm512_unpackhi_ps(a, b), cd2 = _mm512_unpackhi_ps(c, d);
    NativeStore(to + 2 * to_stride, _mm512_shuffle_ps(ab2, cd2, 0x44));
    NativeStore(to + 3 * to_stride, _mm512_shuffle_ps(ab2, cd2, 0xee));
  }
  // Keeps `a` in a register: compilers would load it again at each use.
  HX_INLINE static void Pin(N& a) { __asm__("" : "+v"(a)); }

  // --- D: one register of kDoubles doubles.
  using D = __m512d;
  static constexpr int kDoubles = 8;
  HX_INLINE static D DoubleSet(double value) { return _mm512_set1_pd(value); }
  HX_INLINE static D DoubleLoad(const double* p) { return _mm512_loadu_pd(p); }
  HX_INLINE static void DoubleStore(double* p, D a) { _mm512_storeu_pd(p, a); }
  HX_INLINE static D DoubleMul(D a, D b) { return _mm512_mul_pd(a, b); }
  HX_INLINE static D DoubleFma(D a, D b, D c) {
    return _mm512_fmadd_pd(a, b, c);
  }
  HX_INLINE static D DoubleFloor(D a) { return _mm512_floor_pd(a); }
  // Stores kDoubles numbers rounded to floats.
  HX_INLINE static void StoreRounded(float* p, D a) {
    _mm256_storeu_ps(p, _mm512_cvtpd_ps(a));
  }
  // Stores 16 floats as doubles.
  HX_INLINE static void StoreWidened(double* p, F a) {
    _mm512_storeu_pd(p, _mm512_cvtps_pd(_mm512_castps512_ps256(a)));
    _mm512_storeu_pd(p + 8, _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)));
  }

  // --- Tile sizes (32 registers).
  // Activation rows and registers of outputs of a tile of matmul: 24
  // accumulators.
  static constexpr int kTileRows = 12;
  static constexpr int kTileVecs = 2;
  // Weight rows that are multiplied at once with `rows` activation rows, 1
  // to 4.
  static constexpr int DirectWeights(int) { return 4; }
  // Registers of columns (scores) for `group` heads, of head_dim (values).
  static constexpr int ScoreVecs(int group) { return group == 1 ? 8 : 4; }
  static constexpr int kValueVecs = 4;
  // Rows and registers of columns of a tile of batch_matmul: 24 accumulators.
  static constexpr int kDoubleRows = 6;
  static constexpr int kDoubleVecs = 4;

 private:
  HX_INLINE static F SignBits() { return Set(-0.0f); }
  HX_INLINE static __mmask16 First(int64_t n) {
    return static_cast<__mmask16>((1u << n) - 1);
  }
};

}  // namespace
}  // namespace hexllm::cpu

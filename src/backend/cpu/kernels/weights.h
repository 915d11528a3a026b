// Decoders of packed weights into vectors of 16 floats, written once over the
// vector abstraction (vec_*.h). A row is a sequence of blocks; a block has
// kParts parts of kVecs vectors; what the parts of a block share is read first:
//   const auto shared = W::Read(block);
//   W::Decode(block, shared, part, out);  // out[kVecs]
// Where kHalfPairs holds, V::LoadHalfPairs reads the shared part of four rows.
// Values are those of base/dequantize.h. There d * q is rounded before m is
// added; here it is one fma: d (11 bits) times a scale (<= 7) times q (<= 6) is
// exact in 24 bits, so both round once.
#pragma once

#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

// What Read gives where a block starts with one or two half-precision factors
// (kHalfPairs): they are broadcast from memory when used. With one factor,
// `min` is bits of the block that mean nothing.
struct HalfPair {
  float scale;
  float min;
};

// --- Plain types: a block is one vector, and a row may end with a part of one.

template <class V>
struct WeightsF32 {
  using F = typename V::F;
  static constexpr int kBlockBytes = 64, kParts = 1, kVecs = 1;
  static constexpr bool kHalfPairs = false;
  struct Shared {};
  HX_INLINE static Shared Read(const uint8_t*) { return {}; }
  HX_INLINE static void Decode(const uint8_t* block, Shared, int, F* out) {
    out[0] = V::Load(reinterpret_cast<const float*>(block));
  }
};

template <class V>
struct WeightsF16 {
  using F = typename V::F;
  static constexpr int kBlockBytes = 32, kParts = 1, kVecs = 1;
  static constexpr bool kHalfPairs = false;
  struct Shared {};
  HX_INLINE static Shared Read(const uint8_t*) { return {}; }
  HX_INLINE static void Decode(const uint8_t* block, Shared, int, F* out) {
    out[0] = V::LoadF16(block);
  }
};

template <class V>
struct WeightsBF16 {
  using F = typename V::F;
  static constexpr int kBlockBytes = 32, kParts = 1, kVecs = 1;
  static constexpr bool kHalfPairs = false;
  struct Shared {};
  HX_INLINE static Shared Read(const uint8_t*) { return {}; }
  HX_INLINE static void Decode(const uint8_t* block, Shared, int, F* out) {
    out[0] = V::LoadBF16(block);
  }
};

// --- Blocks of 32: vector 0 is the low nibbles of 16 bytes, 1 the high ones.

template <class V>
struct WeightsQ4_0 {  // { f16 d; u8 qs[16] }: d * (q - 8)
  using F = typename V::F;
  static constexpr int kBlockBytes = 18, kParts = 1, kVecs = 2;
  static constexpr bool kHalfPairs = true;
  using Shared = HalfPair;
  HX_INLINE static Shared Read(const uint8_t* block) {
    return {V::HalfToFloat(block), 0.0f};
  }
  HX_INLINE static void Decode(const uint8_t* block, const Shared& s, int,
                               F* out) {
    const auto d = V::Set(s.scale);
    V::MapNibbles(
        block + 2, [&](F q) { return V::Mul(V::Sub(q, V::Set(8.0f)), d); },
        out);
  }
};

template <class V>
struct WeightsQ4_1 {  // { f16 d, m; u8 qs[16] }: d * q + m
  using F = typename V::F;
  static constexpr int kBlockBytes = 20, kParts = 1, kVecs = 2;
  static constexpr bool kHalfPairs = true;
  using Shared = HalfPair;
  HX_INLINE static Shared Read(const uint8_t* block) {
    return {V::HalfToFloat(block), V::HalfToFloat(block + 2)};
  }
  HX_INLINE static void Decode(const uint8_t* block, const Shared& s, int,
                               F* out) {
    const auto d = V::Set(s.scale);
    const auto m = V::Set(s.min);
    V::MapNibbles(
        block + 4, [&](F q) { return V::Fma(q, d, m); }, out);
  }
};

// Five-bit numbers: nibbles at qs, bit i of the u32 at qh on top of element i.
template <class V>
HX_INLINE typename V::B FiveBits(const uint8_t* qs, const uint8_t* qh, int i) {
  uint16_t bits;
  memcpy(&bits, qh + 2 * i, sizeof(bits));
  return V::OrBytes(V::Field(V::LoadBytes(qs), 4 * i, 15),
                    V::SpreadBits(bits, 16));
}

template <class V>
struct WeightsQ5_0 {  // { f16 d; u32 qh; u8 qs[16] }: d * (q - 16)
  using F = typename V::F;
  static constexpr int kBlockBytes = 22, kParts = 1, kVecs = 2;
  static constexpr bool kHalfPairs = true;
  using Shared = HalfPair;
  HX_INLINE static Shared Read(const uint8_t* block) {
    return {V::HalfToFloat(block), 0.0f};
  }
  HX_INLINE static void Decode(const uint8_t* block, const Shared& s, int,
                               F* out) {
    const auto d = V::Set(s.scale);
    for (int i = 0; i < 2; ++i) {
      const auto q = FiveBits<V>(block + 6, block + 2, i);
      out[i] = V::Mul(V::FromSigned(V::SubBytes(q, V::SetBytes(16))), d);
    }
  }
};

template <class V>
struct WeightsQ5_1 {  // { f16 d, m; u32 qh; u8 qs[16] }: d * q + m
  using F = typename V::F;
  static constexpr int kBlockBytes = 24, kParts = 1, kVecs = 2;
  static constexpr bool kHalfPairs = true;
  using Shared = HalfPair;
  HX_INLINE static Shared Read(const uint8_t* block) {
    return {V::HalfToFloat(block), V::HalfToFloat(block + 2)};
  }
  HX_INLINE static void Decode(const uint8_t* block, const Shared& s, int,
                               F* out) {
    const auto d = V::Set(s.scale);
    const auto m = V::Set(s.min);
    for (int i = 0; i < 2; ++i) {
      const auto q = FiveBits<V>(block + 8, block + 4, i);
      out[i] = V::Fma(V::FromUnsigned(q), d, m);
    }
  }
};

template <class V>
struct WeightsQ8_0 {  // { f16 d; i8 qs[32] }: d * q
  using F = typename V::F;
  static constexpr int kBlockBytes = 34, kParts = 1, kVecs = 2;
  static constexpr bool kHalfPairs = true;
  using Shared = HalfPair;
  HX_INLINE static Shared Read(const uint8_t* block) {
    return {V::HalfToFloat(block), 0.0f};
  }
  HX_INLINE static void Decode(const uint8_t* block, const Shared& s, int,
                               F* out) {
    const auto d = V::Set(s.scale);
    for (int i = 0; i < 2; ++i) {
      const auto q = V::LoadBytes(block + 2 + 16 * i);
      out[i] = V::Mul(V::FromSigned(q), d);
    }
  }
};

}  // namespace
}  // namespace hexllm::cpu

// Decoders of the K-quants: blocks of 256 = 8 parts of 32. See weights.h for
// the interface, base/dequantize.cc for the layouts in words.
#pragma once

#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

// d * scale and dmin * min of a block, in whatever order the type stores them.
struct KScales {
  alignas(64) float scale[16];
  alignas(64) float min[16];
};

// Where part p of a type with two-bit fields starts in its 64 bytes, and the
// shift of the field: two halves of four groups of 32.
HX_INLINE int TwoBitByte(int part) { return part / 4 * 32; }
HX_INLINE int TwoBitShift(int part) { return part % 4 * 2; }

template <class V>
struct WeightsQ2_K {  // { u8 scales[16], qs[64]; f16 d, dmin }
  using F = typename V::F;
  static constexpr int kBlockBytes = 84, kParts = 8, kVecs = 2;
  static constexpr bool kHalfPairs = false;
  using Shared = KScales;
  HX_INLINE static Shared Read(const uint8_t* block) {
    const auto packed = V::LoadBytes(block);
    Shared s;
    V::Store(s.scale, V::Mul(V::FromUnsigned(V::Field(packed, 0, 15)),
                             V::Set(V::HalfToFloat(block + 80))));
    V::Store(s.min, V::Mul(V::FromUnsigned(V::Field(packed, 4, 15)),
                           V::Set(V::HalfToFloat(block + 82))));
    return s;
  }
  HX_INLINE static void Decode(const uint8_t* block, const Shared& s, int part,
                               F* out) {
    const uint8_t* qs = block + 16 + TwoBitByte(part);
    for (int i = 0; i < 2; ++i) {
      const auto q = V::Field(V::LoadBytes(qs + 16 * i), TwoBitShift(part), 3);
      out[i] = V::Fma(V::FromUnsigned(q), V::Set(s.scale[2 * part + i]),
                      V::Set(-s.min[2 * part + i]));
    }
  }
};

template <class V>
struct WeightsQ3_K {  // { u8 hmask[32], qs[64], scales[12]; f16 d }
  using F = typename V::F;
  static constexpr int kBlockBytes = 110, kParts = 8, kVecs = 2;
  static constexpr bool kHalfPairs = false;
  using Shared = KScales;
  HX_INLINE static Shared Read(const uint8_t* block) {
    // Scales 0-7 have the low, 8-15 the high nibbles of bytes 0-7; the top two
    // bits are two-bit fields of bytes 8-11.
    uint32_t packed[3], scales[4];
    memcpy(packed, block + 96, sizeof(packed));
    for (uint32_t i = 0; i < 4; ++i) {
      scales[i] = (packed[i % 2] >> (i / 2 * 4) & 0x0f0f0f0fu) |
                  (packed[2] >> (2 * i) & 0x03030303u) << 4;
    }
    uint8_t bytes[16];
    memcpy(bytes, scales, sizeof(bytes));
    const auto q = V::SubBytes(V::LoadBytes(bytes), V::SetBytes(32));
    Shared s;
    V::Store(s.scale,
             V::Mul(V::FromSigned(q), V::Set(V::HalfToFloat(block + 108))));
    return s;
  }
  HX_INLINE static void Decode(const uint8_t* block, const Shared& s, int part,
                               F* out) {
    const uint8_t* qs = block + 32 + TwoBitByte(part);
    for (int i = 0; i < 2; ++i) {
      const auto low =
          V::Field(V::LoadBytes(qs + 16 * i), TwoBitShift(part), 3);
      const auto high = V::Field(V::LoadBytes(block + 16 * i), part, 1);
      const auto q =
          V::SubBytes(V::OrBytes(low, V::Raise(high, 2)), V::SetBytes(4));
      out[i] = V::Mul(V::FromSigned(q), V::Set(s.scale[2 * part + i]));
    }
  }
};

// Scales and mins of Q4_K and Q5_K: scale[0..7] and min[8..15].
template <class V>
HX_INLINE KScales ReadSixBitScales(const uint8_t* block) {
  uint32_t packed[3];
  memcpy(packed, block + 4, sizeof(packed));
  const uint32_t six[4] = {
      packed[0] & 0x3f3f3f3fu,
      (packed[2] & 0x0f0f0f0fu) | (packed[0] >> 6 & 0x03030303u) << 4,
      packed[1] & 0x3f3f3f3fu,
      (packed[2] >> 4 & 0x0f0f0f0fu) | (packed[1] >> 6 & 0x03030303u) << 4};
  uint8_t bytes[16];
  memcpy(bytes, six, sizeof(bytes));
  const auto all = V::FromUnsigned(V::LoadBytes(bytes));
  KScales s;
  V::Store(s.scale, V::Mul(all, V::Set(V::HalfToFloat(block))));
  V::Store(s.min, V::Mul(all, V::Set(V::HalfToFloat(block + 2))));
  return s;
}

template <class V>
struct WeightsQ4_K {  // { f16 d, dmin; u8 scales[12], qs[128] }
  using F = typename V::F;
  static constexpr int kBlockBytes = 144, kParts = 8, kVecs = 2;
  static constexpr bool kHalfPairs = false;
  using Shared = KScales;
  HX_INLINE static Shared Read(const uint8_t* block) {
    return ReadSixBitScales<V>(block);
  }
  HX_INLINE static void Decode(const uint8_t* block, const Shared& s, int part,
                               F* out) {
    const uint8_t* qs = block + 16 + part / 2 * 32;
    for (int i = 0; i < 2; ++i) {
      const auto q = V::Field(V::LoadBytes(qs + 16 * i), part % 2 * 4, 15);
      out[i] = V::Fma(V::FromUnsigned(q), V::Set(s.scale[part]),
                      V::Set(-s.min[8 + part]));
    }
  }
};

template <class V>
struct WeightsQ5_K {  // { f16 d, dmin; u8 scales[12], qh[32], qs[128] }
  using F = typename V::F;
  static constexpr int kBlockBytes = 176, kParts = 8, kVecs = 2;
  static constexpr bool kHalfPairs = false;
  using Shared = KScales;
  HX_INLINE static Shared Read(const uint8_t* block) {
    return ReadSixBitScales<V>(block);
  }
  HX_INLINE static void Decode(const uint8_t* block, const Shared& s, int part,
                               F* out) {
    const uint8_t* qs = block + 48 + part / 2 * 32;
    for (int i = 0; i < 2; ++i) {
      const auto low = V::Field(V::LoadBytes(qs + 16 * i), part % 2 * 4, 15);
      const auto high = V::Field(V::LoadBytes(block + 16 + 16 * i), part, 1);
      const auto q = V::OrBytes(low, V::Raise(high, 4));
      out[i] = V::Fma(V::FromUnsigned(q), V::Set(s.scale[part]),
                      V::Set(-s.min[8 + part]));
    }
  }
};

template <class V>
struct WeightsQ6_K {  // { u8 ql[128], qh[64]; i8 scales[16]; f16 d }
  using F = typename V::F;
  static constexpr int kBlockBytes = 210, kParts = 8, kVecs = 2;
  static constexpr bool kHalfPairs = false;
  using Shared = KScales;
  HX_INLINE static Shared Read(const uint8_t* block) {
    Shared s;
    V::Store(s.scale, V::Mul(V::FromSigned(V::LoadBytes(block + 192)),
                             V::Set(V::HalfToFloat(block + 208))));
    return s;
  }
  HX_INLINE static void Decode(const uint8_t* block, const Shared& s, int part,
                               F* out) {
    const uint8_t* ql = block + part / 4 * 64 + part % 2 * 32;
    const uint8_t* qh = block + 128 + TwoBitByte(part);
    for (int i = 0; i < 2; ++i) {
      const auto low =
          V::Field(V::LoadBytes(ql + 16 * i), part % 4 / 2 * 4, 15);
      const auto high =
          V::Field(V::LoadBytes(qh + 16 * i), TwoBitShift(part), 3);
      const auto q =
          V::SubBytes(V::OrBytes(low, V::Raise(high, 4)), V::SetBytes(32));
      out[i] = V::Mul(V::FromSigned(q), V::Set(s.scale[2 * part + i]));
    }
  }
};

}  // namespace
}  // namespace hexllm::cpu

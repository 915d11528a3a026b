#include "base/dequantize.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace hexllm {
namespace {

// Blocks arrive unaligned: every multi-byte field is read with memcpy.
using Block = const uint8_t*;

template <typename T>
T Load(Block at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

float LoadHalf(Block at) { return F16ToF32(Load<uint16_t>(at)); }

// Bits [shift, shift + width) of a byte.
constexpr int Bits(unsigned byte, unsigned shift, unsigned width) {
  return static_cast<int>((byte >> shift) & ((1u << width) - 1));
}

// --- Blocks of 32: element i < 16 sits in the low nibble of byte i, element
// --- i + 16 in its high nibble.

int Nibble32(Block qs, unsigned i) {
  return Bits(qs[i % 16], i < 16 ? 0 : 4, 4);
}

// { f16 d; u8 qs[16] }: d * (q - 8).
void DequantizeQ4_0(Block block, float* out) {
  const float d = LoadHalf(block);
  for (unsigned i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(Nibble32(block + 2, i) - 8);
  }
}

// { f16 d, m; u8 qs[16] }: d * q + m.
void DequantizeQ4_1(Block block, float* out) {
  const float d = LoadHalf(block);
  const float m = LoadHalf(block + 2);
  for (unsigned i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(Nibble32(block + 4, i)) + m;
  }
}

// The fifth bit of element i is bit i of a u32.
int FiveBits32(Block qs, uint32_t high_bits, unsigned i) {
  return Nibble32(qs, i) | static_cast<int>(((high_bits >> i) & 1u) << 4);
}

// { f16 d; u32 qh; u8 qs[16] }: d * (q - 16).
void DequantizeQ5_0(Block block, float* out) {
  const float d = LoadHalf(block);
  const auto high_bits = Load<uint32_t>(block + 2);
  for (unsigned i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(FiveBits32(block + 6, high_bits, i) - 16);
  }
}

// { f16 d, m; u32 qh; u8 qs[16] }: d * q + m.
void DequantizeQ5_1(Block block, float* out) {
  const float d = LoadHalf(block);
  const float m = LoadHalf(block + 2);
  const auto high_bits = Load<uint32_t>(block + 4);
  for (unsigned i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(FiveBits32(block + 8, high_bits, i)) + m;
  }
}

// { f16 d; i8 qs[32] }: d * q.
void DequantizeQ8_0(Block block, float* out) {
  const float d = LoadHalf(block);
  for (unsigned i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
  }
}

// --- Blocks of 256. Two-bit fields: the 256 elements are two halves of four
// --- groups of 32; group g of a half is bits [2g, 2g + 2) of the half's 32
// --- bytes. Scales of 16 elements count through the block in order.

// { u8 scales[16], qs[64]; f16 d, dmin }: d * scale * q - dmin * min; a scale
// byte holds the scale in its low and the min in its high nibble.
void DequantizeQ2_K(Block block, float* out) {
  const Block scales = block;
  const Block qs = block + 16;
  const float d = LoadHalf(block + 80);
  const float dmin = LoadHalf(block + 82);
  for (unsigned i = 0; i < 256; ++i) {
    const unsigned half = i / 128;
    const unsigned group = i / 32 % 4;
    const float scale = d * static_cast<float>(Bits(scales[i / 16], 0, 4));
    const float min = dmin * static_cast<float>(Bits(scales[i / 16], 4, 4));
    const int q = Bits(qs[32 * half + i % 32], 2 * group, 2);
    out[i] = scale * static_cast<float>(q) - min;
  }
}

// Scale s of 16 in 12 bytes: four low bits in a nibble of bytes 0-7, two high
// bits in bytes 8-11; stored plus 32.
int ScaleQ3_K(Block scales, unsigned s) {
  const int low = Bits(scales[s % 8], s < 8 ? 0 : 4, 4);
  const int high = Bits(scales[8 + s % 4], 2 * (s / 4), 2);
  return (low | high << 4) - 32;
}

// { u8 hmask[32], qs[64], scales[12]; f16 d }: d * scale * q; q is two bits of
// qs, minus 4 where the element's bit in hmask is clear (bit = group of 32).
void DequantizeQ3_K(Block block, float* out) {
  const Block hmask = block;
  const Block qs = block + 32;
  const float d = LoadHalf(block + 108);
  for (unsigned i = 0; i < 256; ++i) {
    const unsigned half = i / 128;
    const unsigned group = i / 32 % 4;
    const float scale = d * static_cast<float>(ScaleQ3_K(block + 96, i / 16));
    const int low = Bits(qs[32 * half + i % 32], 2 * group, 2);
    const int high = Bits(hmask[i % 32], i / 32, 1);
    out[i] = scale * static_cast<float>(low - (1 - high) * 4);
  }
}

// Scale and min of each group of 32 of Q4_K and Q5_K, six bits each, in 12
// bytes: 0-3 scales of groups 0-3, 4-7 their mins; 8-11 the low nibbles of
// groups 4-7 (scale low, min high), whose top two bits are those of bytes 0-7.
struct ScaleMin {
  int scale;
  int min;
};
ScaleMin ScaleMinK(Block packed, unsigned group) {
  if (group < 4) {
    return {Bits(packed[group], 0, 6), Bits(packed[group + 4], 0, 6)};
  }
  const unsigned g = group - 4;
  return {Bits(packed[8 + g], 0, 4) | Bits(packed[g], 6, 2) << 4,
          Bits(packed[8 + g], 4, 4) | Bits(packed[4 + g], 6, 2) << 4};
}

// Nibbles of Q4_K and Q5_K: groups 2p and 2p + 1 of 32 elements are the low and
// the high nibbles of the p-th 32 bytes.
int NibbleK(Block qs, unsigned i) {
  return Bits(qs[i / 64 * 32 + i % 32], i / 32 % 2 * 4, 4);
}

// { f16 d, dmin; u8 scales[12], qs[128] }: d * scale * q - dmin * min.
void DequantizeQ4_K(Block block, float* out) {
  const float d = LoadHalf(block);
  const float dmin = LoadHalf(block + 2);
  for (unsigned group = 0; group < 8; ++group) {
    const ScaleMin packed = ScaleMinK(block + 4, group);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    for (unsigned i = 32 * group; i < 32 * group + 32; ++i) {
      out[i] = scale * static_cast<float>(NibbleK(block + 16, i)) - min;
    }
  }
}

// { f16 d, dmin; u8 scales[12], qh[32], qs[128] }: as Q4_K; the fifth bit of
// element l of group g is bit g of qh[l].
void DequantizeQ5_K(Block block, float* out) {
  const float d = LoadHalf(block);
  const float dmin = LoadHalf(block + 2);
  const Block qh = block + 16;
  for (unsigned group = 0; group < 8; ++group) {
    const ScaleMin packed = ScaleMinK(block + 4, group);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    for (unsigned i = 32 * group; i < 32 * group + 32; ++i) {
      const int q = NibbleK(block + 48, i) | Bits(qh[i % 32], group, 1) << 4;
      out[i] = scale * static_cast<float>(q) - min;
    }
  }
}

// { u8 ql[128], qh[64]; i8 scales[16]; f16 d }: d * scale * (q - 32). In each
// half of 128: groups 0, 1 are the low and groups 2, 3 the high nibbles of 64
// bytes of ql; the top two bits are two-bit fields of 32 bytes of qh.
void DequantizeQ6_K(Block block, float* out) {
  const Block qh = block + 128;
  const Block scales = block + 192;
  const float d = LoadHalf(block + 208);
  for (unsigned i = 0; i < 256; ++i) {
    const unsigned half = i / 128;
    const unsigned group = i / 32 % 4;
    const float scale =
        d * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
    const int low = Bits(block[64 * half + i % 64], group / 2 * 4, 4);
    const int high = Bits(qh[32 * half + i % 32], 2 * group, 2);
    out[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

// --- Plain types as blocks of one element.

void WidenF32(Block at, float* out) { *out = Load<float>(at); }
void WidenF64(Block at, float* out) {
  *out = static_cast<float>(Load<double>(at));
}
void WidenF16(Block at, float* out) { *out = LoadHalf(at); }
void WidenBF16(Block at, float* out) { *out = BF16ToF32(Load<uint16_t>(at)); }

// The type that most checkpoints are stored in: without a call per element.
void WidenRowBF16(Block at, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const uint32_t bits = Load<uint16_t>(at + 2 * i);
    out[i] = std::bit_cast<float>(bits << 16);
  }
}

using DequantizeBlock = void (*)(Block block, float* out);

// The function for one block of `dtype`, or null for integers and bool.
DequantizeBlock FindDequantizeBlock(DType dtype) {
  // clang-format off
  switch (dtype) {
    case DType::kF32: return WidenF32;
    case DType::kF64: return WidenF64;
    case DType::kF16: return WidenF16;
    case DType::kBF16: return WidenBF16;
    case DType::kQ4_0: return DequantizeQ4_0;
    case DType::kQ4_1: return DequantizeQ4_1;
    case DType::kQ5_0: return DequantizeQ5_0;
    case DType::kQ5_1: return DequantizeQ5_1;
    case DType::kQ8_0: return DequantizeQ8_0;
    case DType::kQ2_K: return DequantizeQ2_K;
    case DType::kQ3_K: return DequantizeQ3_K;
    case DType::kQ4_K: return DequantizeQ4_K;
    case DType::kQ5_K: return DequantizeQ5_K;
    case DType::kQ6_K: return DequantizeQ6_K;
    case DType::kBool:
    case DType::kI8: case DType::kU8: case DType::kI16: case DType::kU16:
    case DType::kI32: case DType::kU32: case DType::kI64: case DType::kU64:
      return nullptr;
  }
  // clang-format on
  return nullptr;
}

}  // namespace

bool IsFloatLike(DType dtype) { return FindDequantizeBlock(dtype) != nullptr; }

void DequantizeRow(DType dtype, ByteSpan bytes, std::span<float> out) {
  const DTypeInfo& info = GetDTypeInfo(dtype);
  const DequantizeBlock dequantize = FindDequantizeBlock(dtype);
  HX_CHECK(dequantize != nullptr);
  HX_CHECK(out.size() % info.block_elems == 0);
  const size_t blocks = out.size() / info.block_elems;
  HX_CHECK(bytes.size() % info.block_bytes == 0 &&
           bytes.size() / info.block_bytes == blocks);
  if (dtype == DType::kF32) {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  auto block = reinterpret_cast<Block>(bytes.data());
  if (dtype == DType::kBF16) return WidenRowBF16(block, out);
  for (size_t i = 0; i < blocks; ++i) {
    dequantize(block + i * info.block_bytes, out.data() + i * info.block_elems);
  }
}

}  // namespace hexllm

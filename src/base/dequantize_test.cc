#include "base/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

std::vector<uint32_t> BitsOf(std::span<const float> values) {
  std::vector<uint32_t> bits;
  for (const float value : values) {
    bits.push_back(std::bit_cast<uint32_t>(value));
  }
  return bits;
}

std::vector<float> Dequantize(DType dtype, ByteSpan bytes) {
  const DTypeInfo& info = GetDTypeInfo(dtype);
  std::vector<float> out(bytes.size() / info.block_bytes * info.block_elems);
  DequantizeRow(dtype, bytes, out);
  return out;
}

// tests/data/dequant/TYPE.bin, made from ggml's reference meaning by
// scripts/dev/make_dequant_vectors.py: N blocks, then their elements as f32.
TEST(DequantizeRow, EqualsTheReferenceBitForBit) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsBlockType(info.dtype)) continue;
    const std::string file = testing::ReadWholeFile(
        std::string(HEXLLM_SOURCE_DIR) + "/tests/data/dequant/" +
        std::string(info.name) + ".bin");
    const size_t per_block = info.block_bytes + 4 * info.block_elems;
    ASSERT_GE(file.size() / per_block, 4u) << info.name;
    ASSERT_EQ(file.size() % per_block, 0u) << info.name;
    const size_t blocks = file.size() / per_block;

    std::vector<float> expected(blocks * info.block_elems);
    std::memcpy(expected.data(), file.data() + blocks * info.block_bytes,
                4 * expected.size());
    const ByteSpan stored = AsBytes(file).first(blocks * info.block_bytes);
    EXPECT_EQ(BitsOf(Dequantize(info.dtype, stored)), BitsOf(expected))
        << info.name;
  }
}

// Mapped files promise no alignment.
TEST(DequantizeRow, TakesUnalignedBytes) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsFloatLike(info.dtype)) continue;
    const std::string block(2 * info.block_bytes, '\x3c');
    const std::string shifted = "x" + block;
    EXPECT_EQ(BitsOf(Dequantize(info.dtype, AsBytes(block))),
              BitsOf(Dequantize(info.dtype, AsBytes(shifted).subspan(1))))
        << info.name;
  }
}

TEST(DequantizeRow, WidensPlainTypes) {
  const float f32[] = {1.5f, -0.0f, std::numeric_limits<float>::infinity()};
  EXPECT_EQ(BitsOf(Dequantize(DType::kF32, std::as_bytes(std::span(f32)))),
            BitsOf(f32));
  const double f64[] = {0.1, -2.0, 1e-300};
  const float narrowed[] = {0.1f, -2.0f, 0.0f};
  EXPECT_EQ(BitsOf(Dequantize(DType::kF64, std::as_bytes(std::span(f64)))),
            BitsOf(narrowed));
  const uint16_t halves[] = {0x3c00, 0xc000, 0x0001};
  const float f16[] = {1.0f, -2.0f, 0x1p-24f};
  EXPECT_EQ(BitsOf(Dequantize(DType::kF16, std::as_bytes(std::span(halves)))),
            BitsOf(f16));
  const uint16_t brains[] = {0x3f80, 0xc000, 0x0001};
  const float bf16[] = {1.0f, -2.0f, 0x1p-133f};
  EXPECT_EQ(BitsOf(Dequantize(DType::kBF16, std::as_bytes(std::span(brains)))),
            BitsOf(bf16));
}

TEST(DequantizeRow, TakesAnEmptyRow) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (IsFloatLike(info.dtype)) DequantizeRow(info.dtype, {}, {});
  }
}

TEST(DequantizeRow, ChecksSizes) {
  const std::string bytes(36, '\0');
  std::vector<float> out(64);
  const auto exits = ::testing::ExitedWithCode(70);
  const ByteSpan two_blocks = AsBytes(bytes);
  EXPECT_EXIT(DequantizeRow(DType::kQ4_0, two_blocks.first(18), out), exits,
              "");
  EXPECT_EXIT(DequantizeRow(DType::kQ4_0, two_blocks.first(35), out), exits,
              "");
  EXPECT_EXIT(DequantizeRow(DType::kQ4_0, two_blocks, std::span(out).first(63)),
              exits, "");
  EXPECT_EXIT(
      DequantizeRow(DType::kI8, two_blocks.first(1), std::span(out).first(1)),
      exits, "");
}

TEST(IsFloatLike, IsTrueForFloatsAndBlocks) {
  for (const DTypeInfo& info : AllDTypes()) {
    const bool is_float =
        info.name[0] == 'f' || info.name[0] == 'q' || info.name == "bf16";
    EXPECT_EQ(IsFloatLike(info.dtype), is_float) << info.name;
  }
}

}  // namespace
}  // namespace hexllm

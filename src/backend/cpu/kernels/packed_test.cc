#include "backend/cpu/kernels/packed.h"

#include <gtest/gtest.h>

#include "tests/support/quant_cases.h"

namespace hexllm::cpu::testing {
namespace {

std::vector<std::byte> RandomBytes(std::mt19937& rng, size_t count) {
  std::vector<std::byte> out(count);
  for (std::byte& byte : out) byte = static_cast<std::byte>(rng());
  return out;
}

TEST(Packed, UnpackIsTheReverseOfPack) {
  std::mt19937 rng(3);
  for (const DType dtype : {DType::kQ4_1, DType::kQ8_0, DType::kI8}) {
    for (const int64_t k : {32, 64, 160, 576}) {
      for (const int64_t rows : {1, 7, 16}) {
        const int64_t depth = dtype == DType::kI8 ? k - 5 : k;
        const auto row_bytes =
            static_cast<size_t>(WeightRowBytes(dtype, depth));
        const std::vector<std::byte> stored =
            RandomBytes(rng, row_bytes * static_cast<size_t>(rows));
        std::vector<std::byte> panel = RandomBytes(
            rng, static_cast<size_t>(PackedPanelBytes(dtype, depth)));
        PackPanel(dtype, depth, stored, panel);
        for (int64_t row = 0; row < rows; ++row) {
          std::vector<std::byte> out(row_bytes);
          UnpackRow(dtype, depth, panel, row, out);
          EXPECT_TRUE(std::equal(
              out.begin(), out.end(),
              stored.begin() + static_cast<std::ptrdiff_t>(row_bytes) * row))
              << DTypeName(dtype) << " k " << depth << " row " << row;
        }
        std::vector<std::byte> again(panel.size());
        PackPanel(dtype, depth, stored, again);
        EXPECT_EQ(again, panel) << "bytes that no row owns";
      }
    }
  }
}

TEST(Packed, SizesAreWholeLines) {
  for (const DType dtype : {DType::kQ4_1, DType::kQ8_0, DType::kI8}) {
    for (const int64_t k : {32, 96, 576, 1536}) {
      EXPECT_EQ(PackedPanelBytes(dtype, k) % 64, 0);
      EXPECT_EQ(PackedBytes(dtype, 17, k), 2 * PackedPanelBytes(dtype, k));
    }
  }
  // 18 blocks: factors 18 * 64, 18 * 32 (and 0), then codes.
  EXPECT_EQ(PackedPanelBytes(DType::kQ4_1, 576), 18 * 64 + 18 * 256);
  EXPECT_EQ(PackedPanelBytes(DType::kQ8_0, 576), 18 * 32 + 18 * 512);
  EXPECT_EQ(PackedPanelBytes(DType::kQ8_0, 32), 64 + 512);
  EXPECT_EQ(PackedPanelBytes(DType::kI8, 33), 2 * 512);
}

// The drawing of packed.h, for one code each.
TEST(Packed, LayoutIsAsDrawn) {
  std::vector<std::byte> stored(16 * 34);
  stored[34 * 3 + 2 + 9] = std::byte{5};  // row 3, k = 9: group 2, element 1
  std::vector<std::byte> panel(64 + 512);
  PackPanel(DType::kQ8_0, 32, stored, panel);
  EXPECT_EQ(panel[64 + 2 * 64 + 3 * 4 + 1], std::byte{128 + 5});
  EXPECT_EQ(panel[64], std::byte{128});

  std::vector<std::byte> nibbles(16 * 20);
  // Row 2, k = 21: high nibble of byte 5; group 5 = high of pair 2, element 1.
  nibbles[20 * 2 + 4 + 5] = std::byte{0xc0};
  std::vector<std::byte> nibble_panel(64 + 256);
  PackPanel(DType::kQ4_1, 32, nibbles, nibble_panel);
  EXPECT_EQ(nibble_panel[64 + 2 * 64 + 2 * 4 + 1], std::byte{0xc0});
}

}  // namespace
}  // namespace hexllm::cpu::testing

#include "runtime/rope.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/io_spec.h"

namespace hexllm {
namespace {

const std::vector<float> kTable = {0, 0.5f, 1, -1, 0.25f, -0.25f};  // [3,2]

const RopeRows kRows = {.table = std::as_bytes(std::span(kTable))};

TEST(Rope, CopiesTheRowsOfThePositions) {
  const artifact::IoSpec spec =
      testing::MakeIo({RoleKind::kRopeCos}, DType::kF32, {4, 2});
  std::vector<float> out(8, 99);
  RopeFiller filler(spec, kRows, std::as_writable_bytes(std::span(out)));
  filler.Fill(std::vector<uint32_t>{0, 0, 2, 1});
  EXPECT_EQ(out, (std::vector<float>{0, 0.5f, 0, 0.5f, 0.25f, -0.25f, 1, -1}));
}

TEST(Rope, EncodesThem) {
  const artifact::IoSpec spec = testing::MakeIo(
      {RoleKind::kRopeSin}, DType::kU16, {1, 2},
      artifact::IoEncoding{.scale = 1.0f / 32767, .zero_point = 32768});
  std::vector<uint16_t> out(2);
  RopeFiller filler(spec, kRows, std::as_writable_bytes(std::span(out)));
  filler.Fill(std::vector<uint32_t>{1});
  EXPECT_EQ(out, (std::vector<uint16_t>{65535, 1}));
}

TEST(Rope, LongPromptsHaveRowsOfTheirOwn) {
  const std::vector<float> other = {7, 8};  // [1,2]
  const artifact::IoSpec spec =
      testing::MakeIo({RoleKind::kRopeCos}, DType::kF32, {1, 2});
  std::vector<float> out(2);
  RopeFiller filler(spec,
                    {.table = kRows.table,
                     .long_table = std::as_bytes(std::span(other)),
                     .above_tokens = 64},
                    std::as_writable_bytes(std::span(out)));
  const auto row = [&](uint32_t prompt_tokens) {
    filler.Choose(prompt_tokens);
    filler.Fill(std::vector<uint32_t>{0});
    return out;
  };
  EXPECT_EQ(row(64), (std::vector<float>{0, 0.5f}));
  EXPECT_EQ(row(65), other);
  EXPECT_EQ(row(1), (std::vector<float>{0, 0.5f}));
  EXPECT_TRUE(filler.IsSame(3, 64));
  EXPECT_TRUE(filler.IsSame(65, 1000));
  EXPECT_FALSE(filler.IsSame(64, 65));
}

}  // namespace
}  // namespace hexllm

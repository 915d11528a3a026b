#include "runtime/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/io_spec.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using testing::MakeIo;

TEST(EmbeddingFiller, PutsRowsBehindThePadding) {
  const std::vector<float> table = {0, 1, 10, 11, 20, 21};
  std::vector<float> out(8, -1);
  EmbeddingFiller filler(MakeIo({RoleKind::kEmbedding}, DType::kF32, {4, 2}),
                         DType::kF32, std::as_bytes(std::span(table)),
                         std::as_writable_bytes(std::span(out)));
  filler.Fill(std::vector<int32_t>{2, 1});
  EXPECT_THAT(out, ElementsAre(0, 1, 0, 1, 20, 21, 10, 11));
  filler.Fill(std::vector<int32_t>{0, 0, 0, 2});
  EXPECT_THAT(out, ElementsAre(0, 1, 0, 1, 0, 1, 20, 21));
}

// Rows of blocks, as codes of 16 bits.
TEST(EmbeddingFiller, WidensAndEncodes) {
  // Two rows of 32: scale 1 and 2 (f16), codes 0, 1, 2, ...
  std::vector<std::byte> table;
  for (const std::byte scale_high : {std::byte{0x3c}, std::byte{0x40}}) {
    table.push_back(std::byte{0});
    table.push_back(scale_high);
    for (uint8_t i = 0; i < 32; ++i) table.push_back(std::byte{i});
  }
  artifact::IoSpec spec = MakeIo({RoleKind::kEmbedding}, DType::kU16, {1, 32});
  spec.encoding = {.scale = 0.5F, .zero_point = 100};
  std::vector<uint16_t> out(32);
  EmbeddingFiller filler(spec, DType::kQ8_0, table,
                         std::as_writable_bytes(std::span(out)));
  for (const int32_t id : {0, 1}) {
    filler.Fill(std::span(&id, 1));
    for (int i = 0; i < 32; ++i)
      EXPECT_EQ(out[static_cast<size_t>(i)], 100 + 2 * (id + 1) * i);
  }
}

TEST(EmbeddingFillerDeathTest, ChecksIds) {
  const std::vector<float> table = {0, 1, 10, 11};
  std::vector<float> out(2);
  EmbeddingFiller filler(MakeIo({RoleKind::kEmbedding}, DType::kF32, {1, 2}),
                         DType::kF32, std::as_bytes(std::span(table)),
                         std::as_writable_bytes(std::span(out)));
  EXPECT_DEATH(filler.Fill(std::vector<int32_t>{2}), "");
  EXPECT_DEATH(filler.Fill(std::vector<int32_t>{-1}), "");
}

}  // namespace
}  // namespace hexllm

#include "compile/layer_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hexllm {
namespace {

TokenSequences OfLengths(std::initializer_list<size_t> lengths) {
  TokenSequences sequences;
  for (const size_t length : lengths) sequences.emplace_back(length, 1);
  return sequences;
}

TEST(SampledTokens, AreAllWhereTheyFit) {
  EXPECT_EQ(SampledTokens(OfLengths({3, 1}), 4),
            std::vector<bool>({true, true, true, true}));
}

// However long they are, wherever they begin.
TEST(SampledTokens, HaveTheFirstOfEachSequence) {
  const std::vector<bool> sampled =
      SampledTokens(OfLengths({7, 100, 1, 1000}), 50);
  ASSERT_EQ(sampled.size(), 1108u);
  for (const size_t first : {0u, 7u, 107u, 108u}) EXPECT_TRUE(sampled[first]);
  const auto count = std::ranges::count(sampled, true);
  EXPECT_GE(count, 50);
  EXPECT_LE(count, 54);
}

// Sequences shorter than the distance give others than first tokens as well.
TEST(SampledTokens, AreNotAllFirst) {
  const TokenSequences sequences(1000, std::vector<int32_t>(10, 1));
  const std::vector<bool> sampled = SampledTokens(sequences, 300);
  int64_t first = 0;
  for (size_t i = 0; i < sampled.size(); i += 10) first += sampled[i];
  const auto count = std::ranges::count(sampled, true);
  EXPECT_GE(count, 300);
  EXPECT_LE(count, 364);
  EXPECT_LE(first, 64 + 60);
}

}  // namespace
}  // namespace hexllm

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
  EXPECT_GE(count, 48);
  EXPECT_LE(count, 54);
  // 1108 / 50 = 22.16.
  EXPECT_FALSE(sampled[109]);
  EXPECT_EQ(std::count(sampled.begin() + 109, sampled.begin() + 131, true), 0);
  EXPECT_TRUE(sampled[131]);
}

}  // namespace
}  // namespace hexllm

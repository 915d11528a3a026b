#include "compile/key_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hexllm {
namespace {

// Keys [tokens,1,2]: channel 0 is noise, channel 1 is `offset` plus noise.
std::vector<float> Keys(int64_t tokens, float offset) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> keys;
  for (int64_t t = 0; t < tokens; ++t) {
    keys.push_back(normal(random));
    keys.push_back(offset + normal(random));
  }
  return keys;
}

TEST(KeyStatistics, SqnrIsVarianceOverRoundingError) {
  const std::vector<float> keys = Keys(4000, 0);
  KeyStatistics statistics;
  statistics.Add(std::span(keys).first(1000), {500, 1, 2});
  statistics.Add(std::span(keys).subspan(1000), {3500, 1, 2});
  float most = 0;
  for (const float key : keys) most = std::max(most, std::fabs(key));
  const double scale = static_cast<double>(most) / 127;
  EXPECT_NEAR(statistics.SqnrOf8Bits(),
              10 * std::log10(1.0 / (scale * scale / 12)), 0.2);
}

TEST(KeyStatistics, AConstantOffsetIsNoSignalAndCoarsensTheScale) {
  KeyStatistics plain, shifted;
  plain.Add(Keys(1000, 0), {1000, 1, 2});
  shifted.Add(Keys(1000, 200), {1000, 1, 2});
  EXPECT_GT(plain.SqnrOf8Bits(), 30);
  EXPECT_LT(shifted.SqnrOf8Bits(), 10);
}

TEST(KeyStatistics, EqualKeysLoseNothing) {
  KeyStatistics statistics;
  statistics.Add(std::vector<float>(8, 0.0f), {4, 1, 2});
  EXPECT_GT(statistics.SqnrOf8Bits(), 1e300);
  KeyStatistics offset;
  offset.Add(std::vector<float>(2 * 777, 0.3f), {777, 1, 2});
  EXPECT_GT(offset.SqnrOf8Bits(), 1e300);
}

// One token says nothing of what differs between tokens.
TEST(KeyStatistics, OneTokenIsNoReasonForWideKeys) {
  KeyStatistics statistics;
  statistics.Add(std::vector<float>{0.25f, -3.0f}, {1, 1, 2});
  EXPECT_GT(statistics.SqnrOf8Bits(), 1e300);
}

TEST(LayerOfName, ReadsTheNumber) {
  EXPECT_EQ(LayerOfName("model.layers.12.self_attn.k_cache"), 12);
  EXPECT_FALSE(LayerOfName("model.layers.x.self_attn"));
  EXPECT_FALSE(LayerOfName("model.layers.3"));
  EXPECT_FALSE(LayerOfName("lm_head"));
}

}  // namespace
}  // namespace hexllm

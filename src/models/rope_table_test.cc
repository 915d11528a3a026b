#include "models/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "models/hf_config.h"

namespace hexllm::models {
namespace {

TEST(RopeTable, DefaultFrequenciesAreInversePowers) {
  const auto frequencies = RopeFrequencies({.theta = 10000, .rotary_dim = 8});
  ASSERT_EQ(frequencies.size(), 4u);
  EXPECT_FLOAT_EQ(frequencies[0], 1.0f);
  EXPECT_FLOAT_EQ(frequencies[1], 0.1f);
  EXPECT_FLOAT_EQ(frequencies[2], 0.01f);
  EXPECT_FLOAT_EQ(frequencies[3], 0.001f);
}

TEST(RopeTable, LinearScalingDivides) {
  const auto frequencies = RopeFrequencies({.theta = 10000,
                                            .rotary_dim = 4,
                                            .scaling = RopeScaling::kLinear,
                                            .factor = 4});
  EXPECT_FLOAT_EQ(frequencies[0], 0.25f);
  EXPECT_FLOAT_EQ(frequencies[1], 0.0025f);
}

// Llama 3.2's numbers: high frequencies stay, low ones are divided by 32, those
// between are blended.
TEST(RopeTable, Llama3ScalingHasThreeZones) {
  const RopeConfig rope = {.theta = 500000,
                           .rotary_dim = 64,
                           .scaling = RopeScaling::kLlama3,
                           .factor = 32,
                           .low_freq_factor = 1,
                           .high_freq_factor = 4,
                           .original_positions = 8192};
  RopeConfig plain = rope;
  plain.scaling = RopeScaling::kDefault;
  const auto scaled = RopeFrequencies(rope);
  const auto original = RopeFrequencies(plain);
  EXPECT_EQ(scaled.front(), original.front());
  EXPECT_FLOAT_EQ(scaled.back(), original.back() / 32);
  size_t blended = 0;
  for (size_t i = 0; i < scaled.size(); ++i) {
    EXPECT_LE(scaled[i], original[i]);
    EXPECT_GE(scaled[i], original[i] / 32 * 0.999f);
    if (scaled[i] < original[i] * 0.99f && scaled[i] > original[i] / 32 * 1.01f)
      ++blended;
  }
  EXPECT_GT(blended, 0u);
}

TEST(RopeTable, RowsArePositions) {
  const RopeTableData table = MakeRopeTable({.theta = 100, .rotary_dim = 4}, 3);
  ASSERT_EQ(table.cos.size(), 6u);
  EXPECT_EQ(table.cos[0], 1.0f);
  EXPECT_EQ(table.sin[0], 0.0f);
  EXPECT_FLOAT_EQ(table.cos[4], std::cos(2.0f));
  EXPECT_FLOAT_EQ(table.sin[5], std::sin(0.2f));
}

TEST(HfRope, OldAndNewKeysMeanTheSame) {
  const auto old_keys = ParseJson(
      R"({"rope_theta":500000.0,"rope_scaling":{"type":"linear","factor":4}})");
  const auto new_keys = ParseJson(
      R"({"rope_parameters":{"rope_theta":500000.0,"rope_type":"linear","factor":4.0}})");
  for (const auto* json : {&old_keys, &new_keys}) {
    const auto rope = ReadHfRope(**json, 64);
    ASSERT_TRUE(rope.ok()) << rope.error().message;
    EXPECT_EQ(rope->theta, 500000.0);
    EXPECT_EQ(rope->scaling, RopeScaling::kLinear);
    EXPECT_EQ(rope->factor, 4.0);
    EXPECT_EQ(rope->rotary_dim, 64);
  }
}

TEST(HfRope, UnknownTypeIsUnsupported) {
  const auto json =
      ParseJson(R"({"rope_scaling":{"rope_type":"yarn","factor":4}})");
  const auto rope = ReadHfRope(*json, 64);
  ASSERT_FALSE(rope.ok());
  EXPECT_EQ(rope.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace hexllm::models

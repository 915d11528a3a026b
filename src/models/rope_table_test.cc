#include "models/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "models/hf_rope.h"

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

TEST(HfRope, LongRopeHasTwoSetsAndAnAttentionFactor) {
  // Keys beside or inside rope_scaling, old or new spelling.
  for (const char* text :
       {R"({"rope_scaling":{"type":"longrope","short_factor":[1,2],
            "long_factor":[4,8]},"max_position_embeddings":4096,
            "original_max_position_embeddings":64})",
        R"({"rope_parameters":{"rope_type":"longrope","short_factor":[1,2],
            "long_factor":[4,8],"original_max_position_embeddings":64},
            "max_position_embeddings":4096})"}) {
    const auto json = ParseJson(text);
    ASSERT_TRUE(json.ok()) << json.error().message;
    const auto rope = ReadHfRope(*json, 4);
    ASSERT_TRUE(rope.ok()) << rope.error().message;
    EXPECT_EQ(rope->original_positions, 64);
    // sqrt(1 + ln(64) / ln(64)).
    EXPECT_FLOAT_EQ(static_cast<float>(rope->attention_factor),
                    std::sqrt(2.0f));
    EXPECT_FLOAT_EQ(RopeFrequencies(*rope)[1], 0.005f);
    EXPECT_FLOAT_EQ(RopeFrequencies(*rope, RopeSet::kLong)[1], 0.00125f);
    EXPECT_FLOAT_EQ(MakeRopeTable(*rope, 1).cos[0], std::sqrt(2.0f));
  }
}

TEST(HfRope, SpoiltLongRopeNamesTheKey) {
  constexpr const char* kGood = R"({"rope_scaling":{"type":"longrope",
      "short_factor":[1,2],"long_factor":[4,8]},"max_position_embeddings":4096,
      "original_max_position_embeddings":64})";
  const auto expect = [&](const char* key, Json value) {
    Json json = *ParseJson(kGood);
    (json.contains(key) ? json : json["rope_scaling"])[key] = std::move(value);
    const auto rope = ReadHfRope(json, 4);
    ASSERT_FALSE(rope.ok()) << key;
    EXPECT_EQ(rope.error().code, ErrorCode::kBadInput);
    EXPECT_NE(rope.error().message.find(key), std::string::npos)
        << rope.error().message;
  };
  expect("short_factor", {1, 2, 3});
  expect("short_factor", {1, 0});
  expect("long_factor", 4);
  expect("long_factor", {1, "2"});
  expect("original_max_position_embeddings", 0);
}

TEST(HfRope, OneSetPerKindOfLayerIsRefused) {
  const auto json = ParseJson(
      R"({"rope_parameters":{"full_attention":{"rope_theta":10000.0}}})");
  const auto rope = ReadHfRope(*json, 4);
  ASSERT_FALSE(rope.ok());
  EXPECT_EQ(rope.error().code, ErrorCode::kUnsupported);
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

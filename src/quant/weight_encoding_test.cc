#include "quant/weight_encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ir/encode.h"
#include "quant/vectors_testing.h"

namespace hexllm::quant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr const char* kSchemes[] = {"fp16",  "16a16w",      "16a8w",
                                    "16a4w", "16a4w_block", "8a8w",
                                    "8a4w",  "cpu-w8a8",    "cpu-w4a8"};

// Normal numbers with a few outliers.
std::vector<float> Weights(size_t count) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 0.05f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  for (size_t i = 17; i < count; i += 300) values[i] *= 6;
  return values;
}

// Of rounding, summed.
double SquaredError(const ir::Encoding& encoding, const Shape& shape,
                    const std::vector<float>& values) {
  const std::vector<float> rounded = Rounded(encoding, shape, values);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double error =
        static_cast<double>(values[i]) - static_cast<double>(rounded[i]);
    sum += error * error;
  }
  return sum;
}

LayerSettings MseSettings(std::string_view scheme, int candidates) {
  LayerSettings settings = SettingsOf(scheme);
  settings.weight_observer = WeightObserverKind::kMse;
  settings.mse_candidates = candidates;
  return settings;
}

TEST(WeightEncoding, ItsFormIsKnownBeforeItsNumbers) {
  const ir::Constant weight = Owned({4, 64}, Weights(256));
  for (const char* scheme : kSchemes) {
    for (const auto granularity :
         {WeightGranularity::kPerChannel, WeightGranularity::kPerTensor}) {
      LayerSettings settings = SettingsOf(scheme);
      settings.granularity = granularity;
      ir::Encoding made = Encode(weight, settings);
      made.scales.assign(made.scales.size(), 1);
      made.block_scales.assign(made.block_scales.size(), 1);
      EXPECT_TRUE(WeightFormat(weight, settings) == made) << scheme;
    }
  }
}

TEST(WeightEncoding, TypesFollowTheScheme) {
  const ir::Constant weight = Owned({4, 64}, Weights(256));
  const ir::Encoding w4 = Encode(weight, SettingsOf("8a4w"));
  EXPECT_EQ(w4.dtype, DType::kI8);
  EXPECT_EQ(w4.bits, 4);
  EXPECT_EQ(w4.axis, 0);
  EXPECT_EQ(w4.scales.size(), 4u);
  EXPECT_TRUE(w4.zero_points.empty());
  const ir::Encoding w16 = Encode(weight, SettingsOf("16a16w"));
  EXPECT_EQ(w16.dtype, DType::kI16);
  EXPECT_EQ(w16.axis, -1);
  EXPECT_EQ(w16.scales.size(), 1u);
  EXPECT_EQ(Encode(weight, SettingsOf("fp16")).dtype, DType::kF16);
  EXPECT_EQ(Encode(weight, SettingsOf("cpu-w8a8")).dtype, DType::kQ8_0);
  EXPECT_EQ(Encode(weight, SettingsOf("cpu-w4a8")).dtype, DType::kQ4_1);
}

// The scales of blocks are f16.
TEST(WeightEncoding, NumbersBeyondTheBlocksScalesAreRefused) {
  for (const auto& [scheme, most] : {std::pair{"cpu-w8a8", 65504.0f * 127},
                                     std::pair{"cpu-w4a8", 65504.0f}}) {
    std::vector<float> values(64, 1.0f);
    values[40] = -most;
    Encode(Owned({2, 32}, values), SettingsOf(scheme));
    values[40] = -1.01f * most;
    const ir::Constant weight = Owned({2, 32}, values);
    const auto found = WeightEncoding(weight, SettingsOf(scheme), nullptr);
    ASSERT_FALSE(found.ok()) << scheme;
    EXPECT_EQ(found.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(found.error().message, HasSubstr("row 1, column 8"));
  }
}

TEST(WeightEncoding, MseTakesTheBestCandidateOfEachChannel) {
  constexpr int kCandidates = 40;
  const std::vector<float> values = Weights(3 * 512);
  for (const char* scheme : {"16a4w", "16a8w"}) {
    const float most = scheme == std::string_view("16a4w") ? 7 : 127;
    const ir::Encoding found =
        Encode(Owned({3, 512}, values), MseSettings(scheme, kCandidates));
    for (size_t row = 0; row < 3; ++row) {
      const std::vector<float> channel(
          values.begin() + static_cast<std::ptrdiff_t>(row * 512),
          values.begin() + static_cast<std::ptrdiff_t>(row * 512 + 512));
      ir::Encoding one{.dtype = DType::kI8, .bits = found.bits};
      double least = std::numeric_limits<double>::infinity();
      for (int i = 0; i < kCandidates; ++i) {
        one.scales = {Magnitude(channel) / most *
                      (1 - 0.8f * static_cast<float>(i) / kCandidates)};
        least = std::min(least, SquaredError(one, {512}, channel));
      }
      one.scales = {found.scales[row]};
      EXPECT_LE(SquaredError(one, {512}, channel), least * 1.0001) << scheme;
    }
  }
}

TEST(WeightEncoding, MseOfATensorIsNoWorseThanAnyCandidate) {
  const std::vector<float> values = Weights(1000);
  LayerSettings settings = MseSettings("16a4w", 20);
  settings.granularity = WeightGranularity::kPerTensor;
  const ir::Encoding found = Encode(Owned({10, 100}, values), settings);
  ASSERT_EQ(found.scales.size(), 1u);
  double least = std::numeric_limits<double>::infinity();
  ir::Encoding one = found;
  for (int i = 0; i < 20; ++i) {
    one.scales = {Magnitude(values) / 7 *
                  (1 - 0.8f * static_cast<float>(i) / 20)};
    least = std::min(least, SquaredError(one, {10, 100}, values));
  }
  EXPECT_LE(SquaredError(found, {10, 100}, values), least * 1.0001);
}

TEST(WeightEncoding, MseOfBlocksBeatsMinMax) {
  const Shape shape = {8, 256};
  const std::vector<float> values = Weights(8 * 256);
  for (const int block : {16, 32, 64}) {
    LayerSettings settings = SettingsOf("16a4w_block");
    settings.block = block;
    const ir::Encoding plain = Encode(Owned(shape, values), settings);
    settings.weight_observer = WeightObserverKind::kMse;
    const ir::Encoding searched = Encode(Owned(shape, values), settings);
    const double error = SquaredError(searched, shape, values);
    EXPECT_LT(error, 0.98 * SquaredError(plain, shape, values)) << block;
    // No other factor of any block is better, for its channel's scale.
    for (size_t b = 0; b < 8; ++b) {
      ir::Encoding changed = searched;
      for (int factor = 1; factor <= plain.block_scales[b]; ++factor) {
        changed.block_scales[b] = static_cast<uint8_t>(factor);
        EXPECT_GE(SquaredError(changed, shape, values), error * 0.99999);
      }
    }
  }
}

TEST(WeightEncoding, NumbersThatAreNotFiniteNameTensorAndRow) {
  for (const char* scheme : kSchemes) {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      std::vector<float> values = Weights(4 * 64);
      values[2 * 64 + 5] = bad;
      ir::Constant weight = Owned({4, 64}, values);
      weight.name = "model.layers.7.mlp.up_proj.weight";
      const auto found = WeightEncoding(weight, SettingsOf(scheme), nullptr);
      ASSERT_FALSE(found.ok()) << scheme;
      EXPECT_EQ(found.error().code, ErrorCode::kBadInput);
      EXPECT_THAT(found.error().message,
                  AllOf(HasSubstr("'model.layers.7.mlp.up_proj.weight'"),
                        HasSubstr("row 2, column 5")));
    }
  }
}

TEST(WeightEncoding, NumbersTooLargeForHalf) {
  std::vector<float> values(32, 65504.0f);
  EXPECT_TRUE(HalfEncoding(Owned({1, 32}, values)).ok());
  values[3] = -65520.0f;
  const auto found = HalfEncoding(Owned({1, 32}, values));
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("row 0, column 3"));
}

TEST(WeightEncoding, BlocksMustDivideTheInputChannels) {
  ir::Constant weight = Owned({2, 48}, Weights(96));
  weight.name = "w";
  LayerSettings settings = SettingsOf("16a4w_block");
  settings.block = 16;
  EXPECT_TRUE(WeightEncoding(weight, settings, nullptr).ok());
  for (const char* scheme : {"16a4w_block", "cpu-w8a8", "cpu-w4a8"}) {
    const auto found = WeightEncoding(weight, SettingsOf(scheme), nullptr);
    ASSERT_FALSE(found.ok()) << scheme;
    EXPECT_EQ(found.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(found.error().message,
                AllOf(HasSubstr("'w'"), HasSubstr("48"), HasSubstr("32")));
  }
}

TEST(WeightEncoding, ZeroChannelsAreCountedAndUsable) {
  std::vector<float> values = Weights(4 * 64);
  for (size_t i = 64; i < 192; ++i) values[i] = 0;
  for (const char* scheme :
       {"16a16w", "16a8w", "16a4w", "16a4w_block", "cpu-w8a8", "cpu-w4a8"}) {
    for (const auto observer :
         {WeightObserverKind::kMinMax, WeightObserverKind::kMse}) {
      LayerSettings settings = SettingsOf(scheme);
      settings.weight_observer = observer;
      WeightReport report;
      const auto found =
          WeightEncoding(Owned({4, 64}, values), settings, &report);
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(report.channels, 4);
      EXPECT_EQ(report.zero_channels, 2);
      for (const float scale : found->scales) EXPECT_GT(scale, 0);
      const auto rounded = Rounded(*found, {4, 64}, values);
      for (size_t i = 64; i < 192; ++i) EXPECT_EQ(rounded[i], 0);
    }
  }
}

// Rows of a constant may stand in another order than they are stored.
TEST(WeightEncoding, ScalesFollowTheLogicalRows) {
  ir::Constant weight = Owned({2, 4}, {1, 1, 1, 1, 7, 7, 7, 7});
  weight.rows = {1, 0};
  const ir::Encoding found = Encode(weight, SettingsOf("16a4w"));
  EXPECT_EQ(found.scales, (std::vector<float>{1.0f, 1.0f / 7}));
}

TEST(WeightEncoding, HugeAndTinyNumbersStayFinite) {
  const float most = std::numeric_limits<float>::max();
  for (const float magnitude : {most, 1e-38f}) {
    const std::vector<float> values(64, magnitude);
    for (const char* scheme : {"16a16w", "16a8w", "16a4w", "16a4w_block"}) {
      for (const auto observer :
           {WeightObserverKind::kMinMax, WeightObserverKind::kMse}) {
        LayerSettings settings = SettingsOf(scheme);
        settings.weight_observer = observer;
        const ir::Encoding found = Encode(Owned({1, 64}, values), settings);
        EXPECT_TRUE(std::isfinite(found.scales[0])) << scheme;
        EXPECT_GT(found.scales[0], 0) << scheme;
      }
    }
  }
}

TEST(TensorEncoding, IsThatOfAnActivation) {
  const auto found = TensorEncoding(Owned({4}, {0.5f, 2.0f, -1.0f, 1.0f}));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, ActivationEncoding({-1, 2}, 16, false));
  EXPECT_FALSE(TensorEncoding(Owned({2}, {1.0f, kNan})).ok());
}

}  // namespace
}  // namespace hexllm::quant

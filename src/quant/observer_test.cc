#include "quant/observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ir/encode.h"

namespace hexllm::quant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr ObserverKind kKinds[] = {
    ObserverKind::kMinMax, ObserverKind::kMovingAverage,
    ObserverKind::kPercentile, ObserverKind::kHistogramMse};

LayerSettings SettingsOf(ObserverKind kind) {
  LayerSettings settings;
  settings.scheme = FindScheme("16a8w");
  settings.observer = kind;
  return settings;
}

// Batches of numbers with a few outliers far from the rest.
std::vector<std::vector<float>> Batches() {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.4f, 1.0f);
  std::vector<std::vector<float>> batches(8, std::vector<float>(2000));
  for (std::vector<float>& batch : batches)
    for (float& value : batch) value = normal(random);
  batches[3][7] = 60.0f;
  batches[5][9] = -25.0f;
  return batches;
}

std::vector<float> Joined(const std::vector<std::vector<float>>& batches) {
  std::vector<float> all;
  for (const std::vector<float>& batch : batches)
    all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

Observation Observe(const LayerSettings& settings, int bits,
                    const std::vector<std::vector<float>>& batches) {
  const auto observer = MakeObserver(settings, bits);
  for (const std::vector<float>& batch : batches) observer->Add(batch);
  auto seen = observer->Finish("x");
  EXPECT_TRUE(seen.ok()) << seen.error().message;
  return seen.ok() ? *seen : Observation{};
}

double FractionOutside(const std::vector<float>& values, Range range) {
  const auto outside = std::count_if(
      values.begin(), values.end(),
      [range](float x) { return x < range.min || x > range.max; });
  return static_cast<double>(outside) / static_cast<double>(values.size());
}

// Of rounding all numbers.
double MeanSquaredError(const std::vector<float>& values,
                        const ir::Encoding& encoding) {
  double sum = 0;
  for (const float value : values) {
    const float back = ir::DecodeOne(encoding, ir::EncodeOne(encoding, value));
    sum += std::pow(static_cast<double>(value) - static_cast<double>(back), 2);
  }
  return sum / static_cast<double>(values.size());
}

TEST(Observer, StatisticsAreThoseOfAllNumbers) {
  const auto batches = Batches();
  const std::vector<float> all = Joined(batches);
  for (const ObserverKind kind : kKinds) {
    const Observation seen = Observe(SettingsOf(kind), 16, batches);
    EXPECT_EQ(seen.count, all.size());
    EXPECT_EQ(seen.extremes, (Range{-25.0f, 60.0f}));
    EXPECT_NEAR(seen.clipped, FractionOutside(all, seen.range), 2e-4);
  }
}

TEST(Observer, MinMaxClipsNothing) {
  const Observation seen =
      Observe(SettingsOf(ObserverKind::kMinMax), 16, Batches());
  EXPECT_EQ(seen.range, (Range{-25.0f, 60.0f}));
  EXPECT_EQ(seen.clipped, 0);
}

TEST(Observer, MovingAverageFollowsBatches) {
  LayerSettings settings = SettingsOf(ObserverKind::kMovingAverage);
  settings.momentum = 0.25;
  const Observation seen =
      Observe(settings, 16, {{-1.0f, 2.0f}, {-3.0f, 2.0f}, {0.0f, 6.0f}});
  // -1, then -1.5, then -1.125; 2, 2, 3.
  EXPECT_FLOAT_EQ(seen.range.min, -1.125f);
  EXPECT_FLOAT_EQ(seen.range.max, 3.0f);
  EXPECT_GT(seen.clipped, 0);
}

TEST(Observer, PercentileCutsHalfOffEitherEnd) {
  LayerSettings settings = SettingsOf(ObserverKind::kPercentile);
  settings.percentile = 99;
  const auto batches = Batches();
  std::vector<float> all = Joined(batches);
  const Observation seen = Observe(settings, 16, batches);
  std::sort(all.begin(), all.end());
  EXPECT_NEAR(seen.range.min, all[80], 0.05);
  EXPECT_NEAR(seen.range.max, all[all.size() - 80], 0.05);
  EXPECT_NEAR(seen.clipped, 0.01, 5e-4);
  settings.percentile = 100;
  EXPECT_EQ(Observe(settings, 16, batches).range, (Range{-25.0f, 60.0f}));
}

// Every pair of ends on a grid, with the error of really rounding.
TEST(Observer, HistogramFindsTheRangeOfLeastError) {
  const auto batches = Batches();
  const std::vector<float> all = Joined(batches);
  for (const bool symmetric : {false, true}) {
    LayerSettings settings = SettingsOf(ObserverKind::kHistogramMse);
    settings.symmetric_activations = symmetric;
    const Observation seen = Observe(settings, 8, batches);
    const double found =
        MeanSquaredError(all, ActivationEncoding(seen.range, 8, symmetric));
    double least = std::numeric_limits<double>::infinity();
    for (int low = 1; low <= 24; ++low) {
      for (int high = 1; high <= 24; ++high) {
        const Range range = {-25.0f * static_cast<float>(low) / 24,
                             60.0f * static_cast<float>(high) / 24};
        const ir::Encoding encoding = ActivationEncoding(range, 8, symmetric);
        least = std::min(least, MeanSquaredError(all, encoding));
      }
    }
    EXPECT_LE(found, 1.02 * least) << symmetric;
    const double by_extremes =
        MeanSquaredError(all, ActivationEncoding({-25, 60}, 8, symmetric));
    EXPECT_LE(found, by_extremes) << symmetric;
  }
}

// Heavy outliers in 8 bits: what the observer is for.
TEST(Observer, HistogramCutsOutliersThatWidenSteps) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> values(1000000);
  for (float& value : values) value = normal(random);
  values[0] = 30.0f;
  const Observation seen =
      Observe(SettingsOf(ObserverKind::kHistogramMse), 8, {values});
  EXPECT_LT(seen.range.max, 15.0f);
  EXPECT_LT(seen.range.min, -3.5f);
}

TEST(Observer, OneSidedNumbersKeepZero) {
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> values;
    for (int i = 0; i < 1000; ++i)
      values.push_back(sign * (5 + static_cast<float>(i) / 1000));
    const Observation seen =
        Observe(SettingsOf(ObserverKind::kHistogramMse), 16, {values});
    const Range held = RangeOf(ActivationEncoding(seen.range, 16, false));
    EXPECT_LE(held.min, 0);
    EXPECT_GE(held.max, 0);
    EXPECT_NEAR(sign > 0 ? held.max : held.min, sign * 6, 0.01);
  }
}

TEST(Observer, NumbersThatAreNotFiniteAreAnErrorWithTheValue) {
  for (const ObserverKind kind : kKinds) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                            -std::numeric_limits<float>::infinity()}) {
      const auto observer = MakeObserver(SettingsOf(kind), 16);
      observer->Add(std::vector<float>{1.0f, bad, 2.0f});
      const auto seen = observer->Finish("model.layers.3.mlp");
      ASSERT_FALSE(seen.ok());
      EXPECT_EQ(seen.error().code, ErrorCode::kBadInput);
      EXPECT_THAT(seen.error().message,
                  AllOf(HasSubstr("'model.layers.3.mlp'"), HasSubstr("NaN"),
                        HasSubstr("1 of 3")));
    }
  }
}

TEST(Observer, NoNumbersAreAnErrorWithTheValue) {
  for (const ObserverKind kind : kKinds) {
    const auto observer = MakeObserver(SettingsOf(kind), 16);
    observer->Add({});
    const auto seen = observer->Finish("model.norm");
    ASSERT_FALSE(seen.ok());
    EXPECT_EQ(seen.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(seen.error().message,
                AllOf(HasSubstr("'model.norm'"), HasSubstr("one token")));
  }
}

TEST(Observer, ZerosAlone) {
  for (const ObserverKind kind : kKinds) {
    const Observation seen =
        Observe(SettingsOf(kind), 8, {{0.0f, 0.0f}, {0.0f}});
    EXPECT_EQ(seen.range, (Range{0, 0}));
    EXPECT_EQ(seen.clipped, 0);
  }
}

}  // namespace
}  // namespace hexllm::quant

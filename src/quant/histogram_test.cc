#include "quant/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace hexllm::quant {
namespace {

std::vector<float> Normal(size_t count, float mean, float deviation) {
  std::mt19937 random(static_cast<uint32_t>(count));
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<uint64_t> Counts(const Histogram& histogram) {
  return {histogram.counts().begin(), histogram.counts().end()};
}

TEST(Histogram, BinsHoldWhatTheirEdgesSay) {
  const std::vector<float> values = Normal(5000, 0.3f, 2.0f);
  Histogram histogram;
  histogram.Add(values);
  EXPECT_EQ(histogram.total(), values.size());
  for (int bin = 0; bin < Histogram::kBins; ++bin) {
    const auto inside = [&](float value) {
      const auto x = static_cast<double>(value);
      return x >= histogram.Edge(bin) && x < histogram.Edge(bin + 1);
    };
    EXPECT_EQ(histogram.counts()[static_cast<size_t>(bin)],
              std::count_if(values.begin(), values.end(), inside))
        << bin;
  }
}

// Numbers grow by a factor of 2^40 on the way, in either order.
TEST(Histogram, OrderDoesNotMatter) {
  std::vector<float> values = {0.0f, 0.0f};
  for (int exponent = -20; exponent <= 20; ++exponent) {
    values.push_back(std::ldexp(0.9f, exponent));
    values.push_back(-std::ldexp(0.6f, exponent));
  }
  Histogram at_once, upwards, downwards;
  at_once.Add(values);
  for (const float value : values) upwards.Add({&value, 1});
  std::reverse(values.begin(), values.end());
  for (const float value : values) downwards.Add({&value, 1});
  EXPECT_EQ(Counts(at_once), Counts(upwards));
  EXPECT_EQ(Counts(at_once), Counts(downwards));
  EXPECT_EQ(at_once.Edge(0), downwards.Edge(0));
}

TEST(Histogram, TakesTheExtremesOfFloat) {
  const float values[] = {std::numeric_limits<float>::denorm_min(),
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::lowest()};
  Histogram histogram;
  for (const float value : values) histogram.Add({&value, 1});
  EXPECT_EQ(histogram.total(), 3u);
}

TEST(Histogram, LeavesOutWhatIsNotFinite) {
  const float values[] = {1.0f, std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::infinity(), 2.0f};
  Histogram histogram;
  histogram.Add(values);
  EXPECT_EQ(histogram.total(), 2u);
}

TEST(Histogram, QuantilesAreNearTheSortedNumbers) {
  std::vector<float> values = Normal(20001, -1.0f, 3.0f);
  Histogram histogram;
  for (size_t at = 0; at < values.size(); at += 100)
    histogram.Add(std::span(values).subspan(
        at, std::min<size_t>(100, values.size() - at)));
  std::sort(values.begin(), values.end());
  const double width = histogram.Edge(1) - histogram.Edge(0);
  for (const double fraction : {0.001, 0.01, 0.25, 0.5, 0.9, 0.999}) {
    const auto index =
        static_cast<size_t>(fraction * static_cast<double>(values.size()));
    EXPECT_NEAR(histogram.Quantile(fraction),
                static_cast<double>(values[index]), 2 * width)
        << fraction;
  }
}

TEST(Histogram, FractionOutsideIsNearTheCounted) {
  const std::vector<float> values = Normal(50000, 0.0f, 1.0f);
  Histogram histogram;
  histogram.Add(values);
  const Range range = {-2.5f, 1.75f};
  const auto outside = std::count_if(
      values.begin(), values.end(),
      [range](float x) { return x < range.min || x > range.max; });
  EXPECT_NEAR(histogram.FractionOutside(range),
              static_cast<double>(outside) / 50000, 2e-4);
  EXPECT_EQ(Histogram().FractionOutside(range), 0);
}

}  // namespace
}  // namespace hexllm::quant

#include "quant/row_stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace hexllm::quant {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> Normal(size_t count) {
  std::mt19937 random(static_cast<uint32_t>(count));
  std::normal_distribution<float> normal(-0.5f, 2.0f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(Magnitude, IsThatOfTheGreatest) {
  EXPECT_EQ(Magnitude({}), 0);
  for (const size_t count : {1u, 3u, 4u, 7u, 1000u}) {
    std::vector<float> values = Normal(count);
    for (const size_t at : {size_t{0}, count / 2, count - 1}) {
      std::vector<float> changed = values;
      changed[at] = -50;
      EXPECT_EQ(Magnitude(changed), 50);
      changed[at] = -kInfinity;
      EXPECT_EQ(Magnitude(changed), kInfinity);
      EXPECT_LT(FiniteMagnitude(changed), 50);
      changed[at] = -kNan;
      EXPECT_TRUE(std::isnan(Magnitude(changed)));
    }
  }
}

TEST(StatsOf, EqualsTheSlowWay) {
  for (const size_t count : {0u, 1u, 3u, 4u, 5u, 255u, 1027u}) {
    for (const float odd : {0.0f, kNan, kInfinity, 3e30f}) {
      std::vector<float> values = Normal(count);
      if (count > 2) values[2] = odd;
      uint64_t finite = 0;
      Range extremes = {kInfinity, -kInfinity};
      for (const float x : values) {
        if (!std::isfinite(x)) continue;
        ++finite;
        extremes = {std::min(extremes.min, x), std::max(extremes.max, x)};
      }
      const RowStats stats = StatsOf(values);
      EXPECT_EQ(stats.finite, finite);
      EXPECT_EQ(stats.extremes, finite == 0 ? Range{} : extremes);
    }
  }
}

TEST(RoundingError, EqualsTheSlowWay) {
  for (const size_t count : {1u, 6u, 32u, 1000u}) {
    const std::vector<float> values = Normal(count);
    for (const float scale : {0.01f, 0.3f, 5.0f}) {
      for (const float most : {7.0f, 127.0f}) {
        double wanted = 0;
        for (const float x : values) {
          const float code = std::clamp(std::nearbyint(x / scale), -most, most);
          wanted += std::pow(static_cast<double>(x - code * scale), 2);
        }
        const double found = RoundingError(values, {scale, most}, INFINITY);
        EXPECT_NEAR(found, wanted, 1e-4 * wanted + 1e-9);
        EXPECT_GT(RoundingError(values, {scale, most}, wanted / 2), wanted / 2);
      }
    }
  }
}

}  // namespace
}  // namespace hexllm::quant

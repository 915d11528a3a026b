#include "quant/channel_factors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/float_constant.h"
#include "quant/product_testing.h"

namespace hexllm::quant {
namespace {

constexpr int64_t kWidth = 32;
constexpr int64_t kTokens = 64;

class NoInputs final : public LayerInputs {
 public:
  const std::string& InputOf(const std::string&) const override { return name; }
  Result<InputSample> Sample(const std::string&) override {
    return InputSample();
  }
  Result<Digest> Key() override { return Digest(); }
  std::string name;
};

// Two linears that read [kTokens,kWidth], of which some channels are loud.
struct Problem {
  Problem(std::string_view scheme, float loud) {
    settings.scheme = FindScheme(scheme);
    rows = Normals(kTokens, 1);
    for (size_t i = 0; i < rows.size(); ++i)
      if (i % 8 == 3) rows[i] *= loud;
    ranges.Add(rows, kWidth);
    for (uint32_t i = 0; i < 2; ++i) {
      weights.push_back(
          ir::MakeFloatConstant("w", {24, kWidth}, Normals(24, 2 + i)));
    }
    for (const ir::Constant& weight : weights)
      linears.push_back({weight, settings});
  }
  static std::vector<float> Normals(int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> values(static_cast<size_t>(count * kWidth));
    for (float& value : values) value = normal(random);
    return values;
  }

  FactorTask Task() const { return {linears, ranges, ties}; }
  InputSample Sample() const { return {.rows = rows}; }
  double Error(std::span<const float> factors) {
    return FactorError(Task(), Sample(), context, factors);
  }

  LayerSettings settings;
  std::vector<float> rows;
  ChannelRanges ranges;
  ChannelTies ties;
  std::vector<ir::Constant> weights;
  std::vector<FactoredLinear> linears;
  NoInputs inputs;
  ThreadPool pool{1};
  NullProgress progress;
  SearchContext context = {.inputs = inputs,
                           .product = MultiplyPlainly,
                           .pool = pool,
                           .progress = progress};
};

const std::vector<float> kOnes(kWidth, 1.0f);

TEST(FactorsByAlpha, AreSmoothQuants) {
  const Problem problem("16a4w", 20);
  const std::vector<float> factors = FactorsByAlpha(problem.Task(), 0.5);
  // (max |x|)^a / (max |w|)^(1 - a), but for one number for all.
  double ratio = 0;
  for (size_t k = 0; k < kWidth; ++k) {
    float x = 0, w = 0;
    for (size_t t = k; t < problem.rows.size(); t += kWidth)
      x = std::max(x, std::abs(problem.rows[t]));
    for (const ir::Constant& weight : problem.weights) {
      const std::vector<float> values = ir::ReadAllRows(weight);
      for (size_t i = k; i < values.size(); i += kWidth)
        w = std::max(w, std::abs(values[i]));
    }
    const double expected = std::sqrt(static_cast<double>(x / w));
    if (k == 0) ratio = static_cast<double>(factors[0]) / expected;
    EXPECT_NEAR(static_cast<double>(factors[k]) / expected, ratio, 1e-5) << k;
  }
}

// 4 bits leave less error where loud inputs have large weights; the error is
// that of the linears.
TEST(SearchFactors, NeverLeaveMoreError) {
  for (const char* scheme :
       {"16a4w", "8a8w", "16a8w", "8a4w", "16a4w_block", "cpu-w4a8"}) {
    for (const float loud : {1.0f, 20.0f}) {
      Problem problem(scheme, loud);
      const auto factors =
          SearchFactors(problem.Task(), problem.Sample(), problem.context);
      ASSERT_TRUE(factors.ok()) << factors.error().message;
      const bool must_find = loud > 1 && std::string_view(scheme) == "16a4w";
      EXPECT_FALSE(must_find && factors->empty());
      if (factors->empty()) continue;
      EXPECT_LT(problem.Error(*factors),
                (must_find ? 0.7 : 1) * problem.Error(kOnes))
          << scheme;
    }
  }
}

TEST(SearchFactors, AreTheSameForMomentsAsForRows) {
  Problem problem("16a4w", 20);
  std::vector<float> moments(kWidth * kWidth);
  for (size_t t = 0; t < problem.rows.size(); t += kWidth) {
    for (size_t i = 0; i < moments.size(); ++i)
      moments[i] += problem.rows[t + i / kWidth] * problem.rows[t + i % kWidth];
  }
  const auto by_rows =
      SearchFactors(problem.Task(), problem.Sample(), problem.context);
  const auto by_moments =
      SearchFactors(problem.Task(), {.moments = moments}, problem.context);
  ASSERT_EQ(by_rows->size(), by_moments->size());
  for (size_t k = 0; k < by_rows->size(); ++k)
    EXPECT_NEAR((*by_rows)[k], (*by_moments)[k], 1e-4f);
}

TEST(SearchFactors, AreSharedByTiedChannels) {
  Problem problem("16a4w", 20);
  problem.ties = {.repeats = 2, .size = 8};
  const auto searched =
      SearchFactors(problem.Task(), problem.Sample(), problem.context);
  for (const auto& factors :
       {*searched, FactorsByAlpha(problem.Task(), 0.75)}) {
    ASSERT_EQ(factors.size(), static_cast<size_t>(kWidth));
    EXPECT_NE(factors[0], factors[3]);
    for (size_t k = 0; k < kWidth; ++k)
      EXPECT_EQ(factors[k], factors[k / 16 * 16 + k % 8]) << k;
  }
}

// What is not rounded needs none.
TEST(SearchFactors, AreNoneForFloats) {
  Problem problem("fp32", 20);
  const auto factors =
      SearchFactors(problem.Task(), problem.Sample(), problem.context);
  ASSERT_TRUE(factors.ok());
  EXPECT_TRUE(factors->empty());
}

// What is never there, or never read, has no factor.
TEST(FactorsByAlpha, AreOneForZeros) {
  Problem problem("16a4w", 20);
  for (size_t t = 5; t < problem.rows.size(); t += kWidth) problem.rows[t] = 0;
  ChannelRanges ranges;
  ranges.Add(problem.rows, kWidth);
  const auto factors =
      FactorsByAlpha({problem.linears, ranges, problem.ties}, 0.5);
  EXPECT_EQ(factors[5], 1);
  EXPECT_NE(factors[6], 1);
  problem.rows[7] = NAN;
  ranges.Add(problem.rows, kWidth);
  EXPECT_FALSE(ranges.IsFinite());
}

}  // namespace
}  // namespace hexllm::quant

#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace hexllm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

int32_t Draw(const std::vector<float>& logits, const SamplerOptions& options,
             uint32_t position = 0, std::vector<int32_t> history = {}) {
  Sampler sampler(static_cast<uint32_t>(logits.size()));
  return sampler
      .Sample({.logits = logits, .history = history, .position = position},
              options)
      .value();
}

// How often each id is drawn at positions 0..draws-1.
std::vector<int> Count(const std::vector<float>& logits,
                       const SamplerOptions& options, int draws) {
  Sampler sampler(static_cast<uint32_t>(logits.size()));
  std::vector<int> counts(logits.size());
  for (int p = 0; p < draws; ++p) {
    const auto id = sampler.Sample(
        {.logits = logits, .history = {}, .position = uint32_t(p)}, options);
    ++counts[static_cast<size_t>(id.value())];
  }
  return counts;
}

// Pearson's statistic against `expected` shares.
double ChiSquare(const std::vector<int>& counts,
                 const std::vector<double>& expected, int draws) {
  double chi = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (expected[i] == 0) {
      EXPECT_EQ(counts[i], 0) << "id " << i;
      continue;
    }
    const double mean = expected[i] * draws;
    chi += (counts[i] - mean) * (counts[i] - mean) / mean;
  }
  return chi;
}

TEST(Sampler, GreedyTakesTheLowestIdOfTies) {
  EXPECT_EQ(Draw({1, 3, -2, 3}, {.temperature = 0}), 1);
  EXPECT_EQ(Draw({-kInf, -5, -kInf}, {.temperature = 0}), 1);
}

TEST(Sampler, TinyTemperatureIsGreedyWithoutOverflow) {
  EXPECT_EQ(Draw({1, 3.5f, 3}, {.temperature = 1e-38f}), 1);
}

TEST(Sampler, FollowsTheDistribution) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.2f),
                                     std::log(0.3f), std::log(0.4f)};
  constexpr int kDraws = 20000;
  for (const uint64_t seed : {0ULL, 1ULL, 99ULL, ~0ULL}) {
    const auto counts = Count(logits, {.temperature = 1, .seed = seed}, kDraws);
    // 3 degrees of freedom: above 16.27 with probability 0.001.
    EXPECT_LT(ChiSquare(counts, {0.1, 0.2, 0.3, 0.4}, kDraws), 16.27);
  }
}

TEST(Sampler, TemperatureSharpens) {
  const std::vector<float> logits = {0, std::log(2.0f)};
  constexpr int kDraws = 20000;
  const auto counts = Count(logits, {.temperature = 0.5f}, kDraws);
  EXPECT_LT(ChiSquare(counts, {0.2, 0.8}, kDraws), 10.83);
}

TEST(Sampler, TopKKeepsTheBestAndTheLowestIdsOfTies) {
  const std::vector<float> logits = {0, 1, 1, 1, -3};
  constexpr int kDraws = 10000;
  const auto counts = Count(logits, {.temperature = 1, .top_k = 2}, kDraws);
  EXPECT_LT(ChiSquare(counts, {0, 0.5, 0.5, 0, 0}, kDraws), 10.83);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.5f),
                                     std::log(0.1f), std::log(0.3f)};
  constexpr int kDraws = 10000;
  // 0.5 + 0.3 reach 0.7; 0.5 alone does not.
  auto counts = Count(logits, {.temperature = 1, .top_p = 0.7f}, kDraws);
  EXPECT_LT(ChiSquare(counts, {0, 0.625, 0, 0.375}, kDraws), 10.83);
  // The best one stays whatever the share.
  counts = Count(logits, {.temperature = 1, .top_p = 0}, 100);
  EXPECT_EQ(counts[1], 100);
}

TEST(Sampler, TopPIsAShareOfWhatTopKLeft) {
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f),
                                     std::log(0.3f)};
  constexpr int kDraws = 10000;
  // Of 0.4 and 0.3 the first has 0.571 of the mass.
  const auto counts =
      Count(logits, {.temperature = 1, .top_k = 2, .top_p = 0.57f}, kDraws);
  EXPECT_EQ(counts[0], kDraws);
}

TEST(Sampler, TopPLooksAtManyCandidatesWhenItMust) {
  constexpr size_t kVocab = 1000;
  const std::vector<float> flat(kVocab, 2.5f);
  const auto counts = Count(flat, {.temperature = 1, .top_p = 0.5f}, 20000);
  for (size_t i = 0; i < kVocab; ++i) EXPECT_EQ(counts[i] > 0, i < 500) << i;
}

TEST(Sampler, MinPIsRelativeToTheBest) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.24f),
                                     std::log(0.26f)};
  constexpr int kDraws = 10000;
  const auto counts = Count(logits, {.temperature = 1, .min_p = 0.5f}, kDraws);
  EXPECT_LT(ChiSquare(counts, {0.5 / 0.76, 0, 0.26 / 0.76}, kDraws), 10.83);
}

TEST(Sampler, RepetitionPenaltyDividesOrMultipliesOnce) {
  const SamplerOptions greedy{.temperature = 0, .repetition_penalty = 2};
  // 3 / 2 < 2; twice in the history is no harder.
  EXPECT_EQ(Draw({2, 3, 1}, greedy, 0, {1}), 0);
  EXPECT_EQ(Draw({1, 3, 1}, greedy, 0, {1, 1, 1}), 1);
  // -1 * 2 < -1.5.
  EXPECT_EQ(Draw({-1, -1.5f}, greedy, 0, {0}), 1);
  // It comes before temperature and top-k.
  EXPECT_EQ(
      Draw({2, 3, 1},
           {.temperature = 0.7f, .top_k = 1, .repetition_penalty = 2}, 5, {1}),
      0);
  // Below 1 it rewards; ids outside the vocabulary count as nothing.
  EXPECT_EQ(Draw({2, 3, 1}, {.temperature = 0, .repetition_penalty = 0.5f}, 0,
                 {0, -1, 99}),
            0);
}

TEST(Sampler, PenaltyCannotOverflow) {
  EXPECT_EQ(
      Draw({1e38f, 2}, {.temperature = 1, .repetition_penalty = 1e-3f}, 0, {0}),
      0);
}

TEST(Sampler, ADrawIsAFunctionOfSeedAndPosition) {
  const std::vector<float> flat(64, 0);
  const SamplerOptions options{.temperature = 1, .seed = 7};
  Sampler sampler(64);
  std::vector<int32_t> forward, backward;
  const auto draw = [&](uint32_t position) {
    return sampler
        .Sample({.logits = flat, .history = {}, .position = position}, options)
        .value();
  };
  for (uint32_t p = 0; p < 50; ++p) forward.push_back(draw(p));
  for (uint32_t p = 50; p-- > 0;) backward.push_back(draw(p));
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
  EXPECT_GT(std::set<int32_t>(forward.begin(), forward.end()).size(), 20U);
  int same = 0;
  for (uint32_t p = 0; p < 50; ++p)
    same += Draw(flat, {.temperature = 1, .seed = 8}, p) == forward[p];
  EXPECT_LT(same, 10);
}

// Fixed for good: saved seeds must give the same text in later versions.
TEST(Sampler, UniformNumbersAreStable) {
  EXPECT_EQ(UniformAt(0, 0), 0x1.4e0dba5e9a32fp-1);
  EXPECT_EQ(UniformAt(0, 1), 0x1.169fb51912560p-5);
  EXPECT_EQ(UniformAt(42, 7), 0x1.6062d6c1339e0p-4);
  double sum = 0;
  for (uint32_t p = 0; p < 10000; ++p) {
    const double u = UniformAt(42, p);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
}

TEST(Sampler, RefusesLogitsThatAreNoNumbers) {
  Sampler sampler(3);
  for (const float bad : {std::nanf(""), kInf}) {
    const std::vector<float> logits = {0, bad, 1};
    const auto result = sampler.Sample(
        {.logits = logits, .history = {}, .position = 41}, {.temperature = 0});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
    EXPECT_NE(result.error().message.find("position 41"), std::string::npos);
  }
  const std::vector<float> none = {-kInf, -kInf, -kInf};
  const auto result = sampler.Sample(
      {.logits = none, .history = {}, .position = 2}, {.temperature = 1});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("position 2"), std::string::npos);
}

TEST(Sampler, OptionsOutOfRangeAreNamed) {
  const auto message = [](const SamplerOptions& options) {
    const Status status = ValidateSamplerOptions(options);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.temperature = 0, .top_p = 0, .min_p = 1}), "");
  EXPECT_EQ(message({.temperature = -1}),
            "temperature is -1; expected 0 or more");
  EXPECT_NE(message({.temperature = std::nanf("")}), "");
  EXPECT_NE(message({.top_k = -1}).find("top-k"), std::string::npos);
  EXPECT_NE(message({.top_p = 1.5f}).find("top-p"), std::string::npos);
  EXPECT_NE(message({.min_p = -0.1f}).find("min-p"), std::string::npos);
  EXPECT_NE(message({.repetition_penalty = 0}).find("repetition penalty"),
            std::string::npos);
}

}  // namespace
}  // namespace hexllm

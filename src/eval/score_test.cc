// Scores and windows on the fake model.
#include "eval/score.h"

#include <gtest/gtest.h>

#include <cmath>

#include "eval/windows.h"
#include "tests/support/fake_session.h"

namespace hexllm {
namespace {

using testing::FakeSession;
using testing::Prompt;

TEST(NegativeLogLikelihood, IsTheLogOfSoftmax) {
  const std::vector<float> logits = {1, 2, 3};
  const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  EXPECT_NEAR(NegativeLogLikelihood(logits, 1), std::log(sum) - 2, 1e-6);
  const std::vector<float> large = {1000, 0};
  EXPECT_NEAR(NegativeLogLikelihood(large, 1), 1000, 1e-9);
}

// More logits than a block of the sum, and no whole number of lanes.
TEST(NegativeLogLikelihood, IsRightForManyLogits) {
  std::vector<float> logits;
  double sum = 0;
  for (int i = 0; i < 5003; ++i) {
    logits.push_back(static_cast<float>((i * 37) % 1001) * 0.03F - 15);
    sum += std::exp(static_cast<double>(logits.back()));
  }
  EXPECT_NEAR(NegativeLogLikelihood(logits, 77),
              std::log(sum) - static_cast<double>(logits[77]), 1e-6);
}

// Ids with the first that counts in brackets: "1 2 [3 4]".
std::string Text(const std::vector<Request>& windows) {
  std::string text;
  for (const Request& window : windows) {
    for (size_t i = 0; i < window.ids.size(); ++i)
      text += (i == window.first_counted ? "[" : " ") +
              std::to_string(window.ids[i]);
    text += "] ";
  }
  return text;
}

TEST(RollingWindows, CountEachTokenOnce) {
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5};
  EXPECT_EQ(Text(RollingWindows(ids, 0, 3)), " 0[1 2 3]  2 3[4 5] ");
  EXPECT_EQ(Text(RollingWindows(ids, 0, 8)), " 0[1 2 3 4 5] ");
  EXPECT_EQ(Text(RollingWindows(ids, std::nullopt, 2)), " 1[2 3]  3[4 5] ");
  EXPECT_TRUE(RollingWindows({}, 0, 3).empty());
  EXPECT_TRUE(RollingWindows(std::span(ids).first(1), std::nullopt, 3).empty());
}

TEST(FixedWindows, CountFreshTokensAndLeaveTheRestOut) {
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(Text(FixedWindows(ids, 4, 2)), " 1[2 3 4]  3 4[5 6] ");
  EXPECT_EQ(Text(FixedWindows(ids, 3, 3)), " 1[2 3]  4[5 6] ");
  EXPECT_TRUE(FixedWindows(ids, 8, 8).empty());
}

TEST(ScoreRequest, SumsWhatCounts) {
  FakeSession model{testing::FakeOptions()};
  const std::vector<int32_t> ids = Prompt(20);
  const auto rows = testing::AllLogits(*model.session, ids);
  double nll = 0, squares = 0;
  bool greedy = true;
  for (size_t i = 12; i < ids.size(); ++i) {
    const auto& row = rows[i - 1];
    const double one = NegativeLogLikelihood(row, ids[i]);
    nll += one;
    squares += one * one;
    greedy = greedy && row[static_cast<size_t>(ids[i])] ==
                           *std::max_element(row.begin(), row.end());
  }
  const auto score =
      ScoreRequest(*model.session, {.ids = ids, .first_counted = 12});
  ASSERT_TRUE(score.ok()) << score.error().message;
  EXPECT_EQ(score->tokens, 8u);
  EXPECT_DOUBLE_EQ(score->nll, nll);
  EXPECT_DOUBLE_EQ(score->squares, squares);
  EXPECT_EQ(score->greedy, greedy);

  // What the model likes best is greedy.
  auto likely = ids;
  likely.back() = static_cast<int32_t>(
      std::max_element(rows[18].begin(), rows[18].end()) - rows[18].begin());
  const auto best =
      ScoreRequest(*model.session, {.ids = likely, .first_counted = 19});
  ASSERT_TRUE(best.ok());
  EXPECT_TRUE(best->greedy);
}

}  // namespace
}  // namespace hexllm

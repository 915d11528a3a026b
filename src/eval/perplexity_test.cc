#include "eval/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/fake_session.h"

namespace hexllm {
namespace {

using testing::FakeSession;
using testing::Prompt;

TEST(NegativeLogLikelihood, IsTheLogOfSoftmax) {
  const std::vector<float> logits = {1, 2, 3};
  const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  EXPECT_NEAR(NegativeLogLikelihood(logits, 1), std::log(sum) - 2, 1e-12);
  const std::vector<float> large = {1000, 0};
  EXPECT_NEAR(NegativeLogLikelihood(large, 1), 1000, 1e-9);
}

class PerplexityTest : public ::testing::Test {
 protected:
  // The mean of the counted tokens, the slow way: one window after the other.
  double Expected(const std::vector<int32_t>& ids, size_t window,
                  size_t stride) {
    double sum = 0;
    size_t counted = 0;
    size_t seen = 1;  // tokens before this index are given or counted
    for (size_t start = 0; start + window <= ids.size(); start += stride) {
      const std::span part = std::span(ids).subspan(start, window);
      const Status status = model_.session->Logits(
          part, [&](uint32_t position, std::span<const float> logits) {
            const size_t next = start + position + 1;
            if (position + 1 < window && next >= seen) {
              sum += NegativeLogLikelihood(logits, ids[next]);
              ++counted;
            }
            return OkStatus();
          });
      EXPECT_TRUE(status.ok()) << status.error().message;
      seen = start + window;
      if (stride == window) ++seen;  // the next window's first token is given
    }
    return sum / static_cast<double>(counted);
  }

  FakeSession model_{testing::FakeOptions()};
  NullProgress progress_;
};

TEST_F(PerplexityTest, CountsEachTokenOnce) {
  const std::vector<int32_t> ids = Prompt(40);
  for (const uint32_t stride : {1u, 3u, 8u}) {
    const auto result = MeasurePerplexity(
        *model_.session, ids, {.window = 8, .stride = stride}, progress_);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_NEAR(result->mean_nll, Expected(ids, 8, stride), 1e-9) << stride;
    EXPECT_NEAR(result->perplexity, std::exp(result->mean_nll), 1e-9);
  }
}

TEST_F(PerplexityTest, LimitAndRestAreLeftOut) {
  const auto all = MeasurePerplexity(*model_.session, Prompt(21),
                                     {.window = 8, .stride = 8}, progress_);
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all->windows, 2u);
  EXPECT_EQ(all->counted_tokens, 14u);
  const auto one =
      MeasurePerplexity(*model_.session, Prompt(21),
                        {.window = 8, .stride = 8, .limit = 1}, progress_);
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(one->windows, 1u);
}

TEST_F(PerplexityTest, RefusesWhatDoesNotFit) {
  for (const PerplexityOptions& options :
       {PerplexityOptions{.window = 1}, PerplexityOptions{.window = 1 << 20},
        PerplexityOptions{.window = 8, .stride = 0},
        PerplexityOptions{.window = 8, .stride = 9},
        PerplexityOptions{.window = 8, .stride = 8, .limit = 0}}) {
    const auto result =
        MeasurePerplexity(*model_.session, Prompt(20), options, progress_);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  }
  EXPECT_FALSE(MeasurePerplexity(*model_.session, Prompt(7),
                                 {.window = 8, .stride = 8}, progress_)
                   .ok());
}

}  // namespace
}  // namespace hexllm

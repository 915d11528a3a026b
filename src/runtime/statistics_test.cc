#include "runtime/statistics.h"

#include <gtest/gtest.h>

#include <string>

namespace hexllm {
namespace {

const TurnStatistics kTurn = {.prompt_tokens = 40,
                              .reused_tokens = 8,
                              .new_tokens = 11,
                              .prompt_seconds = 0.5,
                              .first_token_seconds = 0.6,
                              .decode_seconds = 2};

TEST(Statistics, Rates) {
  EXPECT_DOUBLE_EQ(PromptTokensPerSecond(kTurn), 80);
  // The first token needs no step of its own.
  EXPECT_DOUBLE_EQ(DecodeTokensPerSecond(kTurn), 5);
  EXPECT_EQ(DecodeTokensPerSecond({}), 0);
  EXPECT_EQ(DecodeTokensPerSecond({.new_tokens = 1}), 0);
  EXPECT_EQ(PromptTokensPerSecond({.prompt_tokens = 3}), 0);
}

TEST(Statistics, Json) {
  const Json json = StatisticsToJson(
      {.load_seconds = 0.25, .peak_rss_bytes = 1000, .turns = {kTurn}});
  EXPECT_EQ(DumpJson(json),
            R"({"load_seconds":0.25,"peak_rss_bytes":1000,"turns":[)"
            R"({"prompt_tokens":40,"reused_tokens":8,"new_tokens":11,)"
            R"("prompt_seconds":0.5,"prompt_tokens_per_second":80.0,)"
            R"("first_token_seconds":0.6,"decode_seconds":2.0,)"
            R"("decode_tokens_per_second":5.0}]})");
}

TEST(Statistics, Text) {
  EXPECT_EQ(StatisticsToText({.load_seconds = 1, .peak_rss_bytes = 3000000}),
            "Loaded in 1.00 s, peak memory 3 MB.");
  EXPECT_EQ(StatisticsToText({.load_seconds = 0.25,
                              .peak_rss_bytes = 150000000,
                              .turns = {kTurn}}),
            "Loaded in 0.25 s, peak memory 150 MB. Prompt: 40 tokens in 0.50 s "
            "(80.0 tok/s), 8 more reused. First token after 0.60 s; 11 new "
            "tokens, 5.0 tok/s.");
}

TEST(Statistics, PeakRssIsPlausible) {
  EXPECT_GT(PeakRssBytes(), uint64_t{1} << 20);
  EXPECT_LT(PeakRssBytes(), uint64_t{1} << 40);
}

}  // namespace
}  // namespace hexllm

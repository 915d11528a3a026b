#include "runtime/statistics.h"

#include <gtest/gtest.h>

#include <string>

namespace hexllm {
namespace {

const TurnStatistics kTurn = {
    .prompt_tokens = 40,
    .cached_tokens = 20,
    .reused_tokens = 8,
    .reuse_end = ReuseEnd::kTextDiffers,
    .new_tokens = 11,
    .steps = {.plain = 1, .guesses = 2, .lookahead = 1, .accepted = 6},
    .evictions = 3,
    .prompt_seconds = 0.5,
    .first_token_seconds = 0.6,
    .decode_seconds = 2,
    .decode_cpu_seconds = 3,
    .rss_bytes = 800};

TEST(Statistics, Rates) {
  EXPECT_DOUBLE_EQ(PromptTokensPerSecond(kTurn), 80);
  // The first token needs no step of its own.
  EXPECT_DOUBLE_EQ(DecodeTokensPerSecond(kTurn), 5);
  EXPECT_EQ(DecodeTokensPerSecond({}), 0);
  EXPECT_EQ(DecodeTokensPerSecond({.new_tokens = 1}), 0);
  EXPECT_EQ(PromptTokensPerSecond({.prompt_tokens = 3}), 0);
}

TEST(Statistics, Json) {
  const Json json = StatisticsToJson({.load_seconds = 0.25,
                                      .rss_bytes = 900,
                                      .peak_rss_bytes = 1000,
                                      .turns = {kTurn}});
  EXPECT_EQ(DumpJson(json),
            R"({"load_ms":250.0,"rss_bytes":900,"peak_rss_bytes":1000,)"
            R"("turns":[{"prompt_tokens":40,"cached_tokens":20,)"
            R"("reused_tokens":8,"reuse_end":"text_differs","new_tokens":11,)"
            R"("decode_steps":{"plain":1,"guesses":2,"lookahead":1},)"
            R"("accepted_per_step":2.5,"evictions":3,)"
            R"("prompt_ms":500.0,"prompt_tokens_per_second":80.0,)"
            R"("ttft_ms":600.0,"decode_ms":2000.0,)"
            R"("decode_tokens_per_second":5.0,"cpu_ms_per_token":300.0,)"
            R"("rss_bytes":800}]})");
}

TEST(Statistics, Text) {
  EXPECT_EQ(StatisticsToText({.load_seconds = 1, .peak_rss_bytes = 3000000}),
            "Loaded in 1.00 s, peak memory 3 MB.");
  EXPECT_EQ(StatisticsToText({.load_seconds = 0.25,
                              .peak_rss_bytes = 150000000,
                              .turns = {kTurn}}),
            "Loaded in 0.25 s, peak memory 150 MB. Prompt: 40 tokens in 0.50 s "
            "(80.0 tok/s), 8 of 20 cached ones reused (text_differs). First "
            "token after 0.60 s; 11 new tokens, 5.0 tok/s, 2.50 a step.");
}

TEST(Statistics, PeakRssIsPlausible) {
  EXPECT_GT(PeakRssBytes(), uint64_t{1} << 20);
  EXPECT_LT(PeakRssBytes(), uint64_t{1} << 40);
  EXPECT_LE(RssBytes(), PeakRssBytes());
  EXPECT_GT(CpuSeconds(), 0);
}

}  // namespace
}  // namespace hexllm

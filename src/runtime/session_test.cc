#include "runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_session.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using testing::FakeEngine;
using testing::FakeOptions;
using testing::FakeReference;
using testing::FakeSession;
using testing::Greedy;
using ::testing::HasSubstr;
using testing::Ids;
using testing::MakeFakeArtifact;
using testing::Prompt;

constexpr GraphKind kPrefill = GraphKind::kPrefill;
constexpr GraphKind kKv = GraphKind::kKv;
constexpr LogitsRows kNone = LogitsRows::kNone;
constexpr LogitsRows kAll = LogitsRows::kAll;

TEST(Session, UsesTheBlocksThatItSays) {
  FakeOptions options;
  options.context = 20;
  options.steps = {{kPrefill, 4, kAll}, {kPrefill, 8, kAll}, {kKv, 1, kAll}};
  {
    // At most 12 past tokens for a block of 8: 8, 8 and 3 single ones.
    FakeSession f(options);
    ASSERT_TRUE(f.session->Prefill(Prompt(19)).ok());
    EXPECT_THAT(f.engine.faults.step_tokens, ElementsAre(8, 8, 1, 1, 1));
  }
  {
    // A padded block of 4 for the last 3.
    FakeSession f(options, {.prompt_step_tokens = 4});
    ASSERT_TRUE(f.session->Prefill(Prompt(15)).ok());
    EXPECT_THAT(f.engine.faults.step_tokens, ElementsAre(4, 4, 4, 4));
    EXPECT_THAT(f.engine.faults.first_rows, ElementsAre(0, 0, 0, 1));
  }
  {
    // A last token on its own is a single step.
    FakeSession f(options, {.prompt_step_tokens = 4});
    ASSERT_TRUE(f.session->Prefill(Prompt(9)).ok());
    EXPECT_THAT(f.engine.faults.step_tokens, ElementsAre(4, 4, 1));
  }
  {
    // Without logits in the blocks the last token is a single step.
    options.steps = {{kPrefill, 4, kNone}, {kKv, 1, kAll}};
    FakeSession f(options);
    ASSERT_TRUE(f.session->Prefill(Prompt(8)).ok());
    EXPECT_THAT(f.engine.faults.step_tokens, ElementsAre(4, 4, 1));
  }
}

TEST(Session, EndTokenEndsTheAnswerAndStaysOut) {
  FakeOptions options;
  const Ids prompt = Prompt(11);
  const Ids free = FakeReference::Greedy(options, prompt, 10);
  // The first place of a token that did not occur before it.
  auto end = free.begin() + 4;
  while (std::find(free.begin(), end, *end) != end) ++end;
  options.generation.end_ids = {36, *end};
  ASSERT_EQ(std::count(free.begin(), end, 36), 0);
  FakeSession f(options);
  EXPECT_EQ(f.Answer(prompt, Greedy()), Ids(free.begin(), end));
  EXPECT_EQ(f.last.reason, FinishReason::kEndToken);
  EXPECT_EQ(f.last.end_id, *end);
  EXPECT_EQ(f.session->ids().size(), prompt.size() + f.last.new_tokens);
  f.session->Reset();
  GenerateOptions ignore = Greedy(10);
  ignore.ignore_end_ids = true;
  EXPECT_EQ(f.Answer(prompt, ignore), free);
}

TEST(Session, EndTokenMayComeFirst) {
  FakeOptions options;
  const Ids prompt = Prompt(11);
  options.generation.end_ids = {FakeReference::Greedy(options, prompt, 1)[0]};
  FakeSession f(options);
  EXPECT_EQ(f.Answer(prompt, Greedy()), Ids{});
  EXPECT_EQ(f.last.reason, FinishReason::kEndToken);
  EXPECT_EQ(f.last.new_tokens, 0U);
  EXPECT_EQ(f.last.end_id, options.generation.end_ids[0]);
  EXPECT_EQ(f.session->statistics().turns[0].new_tokens, 0U);
}

TEST(Session, LimitsEndTheAnswer) {
  FakeSession f{FakeOptions{}};
  GenerateOptions options = Greedy();
  options.max_seq_len = 15;
  EXPECT_EQ(f.Answer(Prompt(11), options).size(), 4U);
  EXPECT_EQ(f.last.reason, FinishReason::kMaxSeqLen);
  EXPECT_EQ(f.Generate(Greedy(0)), Ids{});
  EXPECT_EQ(f.last.reason, FinishReason::kMaxNewTokens);
  options.max_seq_len = 65;
  const auto result = f.session->Generate(
      options, [](int32_t) { return Result(TokenAction::kContinue); });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  EXPECT_THAT(result.error().message, HasSubstr("65"));
  EXPECT_THAT(result.error().message, HasSubstr("64"));
}

TEST(Session, GoesOnWhereItStopped) {
  const FakeOptions options;
  FakeSession f(options);
  const Ids prompt = Prompt(5);
  Ids all = f.Answer(prompt, Greedy(3));
  for (int i = 0; i < 4; ++i) {
    const Ids more = f.Generate(Greedy(2));
    all.insert(all.end(), more.begin(), more.end());
  }
  EXPECT_EQ(all, FakeReference::Greedy(options, prompt, 11));
}

TEST(Session, CallbackStopsOrFails) {
  const FakeOptions options;
  FakeSession f(options);
  const Ids prompt = Prompt(5);
  const Ids expected = FakeReference::Greedy(options, prompt, 6);
  ASSERT_TRUE(f.session->Prefill(prompt).ok());
  const auto stopped = f.session->Generate(Greedy(), [](int32_t) {
    return Result<TokenAction>(TokenAction::kStop);
  });
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(stopped->reason, FinishReason::kStopped);
  EXPECT_EQ(stopped->new_tokens, 1U);
  const auto failed = f.session->Generate(Greedy(), [](int32_t) {
    return Result<TokenAction>(Error{ErrorCode::kEnvironment, "pipe closed"});
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "pipe closed");
  // Both tokens are part of the text.
  EXPECT_EQ(f.Generate(Greedy(4)), Ids(expected.begin() + 2, expected.end()));
}

TEST(Session, PromptsOutOfRangeLeaveTheSequence) {
  const FakeOptions options;
  FakeSession f(options);
  ASSERT_TRUE(f.session->Prefill(Prompt(60)).ok());
  const auto expect_usage = [&](const Ids& ids, const std::string& part) {
    const Status status = f.session->Prefill(ids);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kUsage);
    EXPECT_THAT(status.error().message, HasSubstr(part));
  };
  expect_usage({}, "no tokens");
  expect_usage({1, 37}, "token 1 of the prompt is 37");
  expect_usage({-1}, "is -1");
  expect_usage(Prompt(5), "needs 65 tokens of context; there is room for 64");
  EXPECT_EQ(f.session->ids().size(), 60U);
  const auto replaced = f.session->ReplacePrompt(Prompt(70));
  ASSERT_FALSE(replaced.ok());
  EXPECT_THAT(replaced.error().message, HasSubstr("70"));
  const Status logits = f.session->Logits(
      Prompt(65), [](uint32_t, std::span<const float>) { return OkStatus(); });
  ASSERT_FALSE(logits.ok());
  EXPECT_THAT(logits.error().message, HasSubstr("65"));
  EXPECT_EQ(f.Generate(Greedy(4)),
            FakeReference::Greedy(options, Prompt(60), 4));
}

TEST(Session, NothingToContinue) {
  FakeSession f{FakeOptions{}};
  const auto result = f.session->Generate(
      Greedy(), [](int32_t) { return Result(TokenAction::kContinue); });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
}

TEST(Session, EngineErrorsResetIt) {
  const FakeOptions options;
  FakeSession f(options);
  f.engine.faults.failing_step = 1;
  const Status status = f.session->Prefill(Prompt(14));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "the fake device is lost");
  EXPECT_TRUE(f.session->ids().empty());
  EXPECT_EQ(f.Answer(Prompt(9), Greedy(8)),
            FakeReference::Greedy(options, Prompt(9), 8));
}

TEST(Session, LogitsThatAreNoNumbersNameThePosition) {
  const FakeOptions options;
  FakeSession f(options);
  f.engine.faults.nan_step = 3;  // blocks at 0 and 7, then token 14 and 15
  ASSERT_TRUE(f.session->Prefill(Prompt(14)).ok());
  const auto result = f.session->Generate(
      Greedy(), [](int32_t) { return Result(TokenAction::kContinue); });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(result.error().message, HasSubstr("position 16 "));
  EXPECT_TRUE(f.session->ids().empty());
}

TEST(Session, SinkErrorsEndTheRun) {
  FakeSession f{FakeOptions{}};
  const Status status = f.session->Logits(
      Prompt(20), [](uint32_t position, std::span<const float>) {
        return position < 9 ? OkStatus()
                            : Status(Error{ErrorCode::kEnvironment, "full"});
      });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "full");
  EXPECT_EQ(f.engine.faults.steps, 2);
}

TEST(Session, SamplesWithThePenaltyOverTheWholeText) {
  const FakeOptions options;
  FakeSession f(options);
  GenerateOptions generate = Greedy(30);
  generate.sampler.repetition_penalty = 1000;
  Ids text = Prompt(3);
  const Ids answer = f.Answer(text, generate);
  // Every logit is positive, so no token comes twice while others are left.
  text.insert(text.end(), answer.begin(), answer.end());
  std::sort(text.begin(), text.end());
  EXPECT_EQ(std::unique(text.begin(), text.end()), text.end());
}

TEST(Session, SameSeedSameAnswerWhateverTheBlocks) {
  std::vector<Ids> answers;
  for (const uint32_t block : {1U, 7U, 32U}) {
    FakeOptions options;
    options.steps = {{kPrefill, block, kAll}, {kKv, 1, kAll}};
    FakeSession f(options);
    GenerateOptions generate;
    generate.sampler = {.temperature = 1, .top_k = 20, .seed = 5};
    generate.max_new_tokens = 30;
    answers.push_back(f.Answer(Prompt(20), generate));
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(answers[0], answers[2]);
  EXPECT_NE(answers[0], FakeReference::Greedy({}, Prompt(20), 30));
}

TEST(Session, DefaultsComeFromTheArtifact) {
  FakeOptions options;
  EXPECT_EQ(FakeSession(options)
                .session->DefaultGenerateOptions()
                .sampler.temperature,
            0.8f);
  options.generation.temperature = 0.5f;
  options.generation.top_k = 3;
  options.generation.top_p = 0.25f;
  options.generation.min_p = 0.125f;
  options.generation.repetition_penalty = 1.5f;
  const FakeSession f(options);
  const auto sampler = f.session->DefaultGenerateOptions().sampler;
  EXPECT_EQ(sampler.temperature, 0.5f);
  EXPECT_EQ(sampler.top_k, 3);
  EXPECT_EQ(sampler.top_p, 0.25f);
  EXPECT_EQ(sampler.min_p, 0.125f);
  EXPECT_EQ(sampler.repetition_penalty, 1.5f);
}

TEST(Session, StatisticsCountTurns) {
  FakeSession f{FakeOptions{}};
  f.Answer(Prompt(10), Greedy(4));
  ASSERT_TRUE(f.session->ReplacePrompt(Prompt(12)).ok());
  f.Generate(Greedy(2));
  f.Generate(Greedy(1));
  const Statistics statistics = f.session->statistics();
  ASSERT_EQ(statistics.turns.size(), 2U);
  EXPECT_EQ(statistics.turns[0].prompt_tokens, 10U);
  EXPECT_EQ(statistics.turns[0].reused_tokens, 0U);
  EXPECT_EQ(statistics.turns[0].new_tokens, 4U);
  EXPECT_EQ(statistics.turns[1].cached_tokens, 13U);
  EXPECT_EQ(statistics.turns[1].reused_tokens, 10U);
  EXPECT_EQ(statistics.turns[1].reuse_end, ReuseEnd::kTextDiffers);
  EXPECT_EQ(statistics.turns[1].prompt_tokens, 2U);
  EXPECT_EQ(statistics.turns[1].new_tokens, 3U);
  EXPECT_GT(statistics.turns[0].first_token_seconds, 0);
  EXPECT_GT(statistics.turns[0].decode_seconds, 0);
  EXPECT_GT(statistics.load_seconds, 0);
  EXPECT_GT(statistics.turns[0].decode_cpu_seconds, 0);
  EXPECT_GT(statistics.peak_rss_bytes, 0U);
}

Error CreateError(const FakeOptions& options, SessionOptions session = {}) {
  FakeEngine engine;
  auto made = Session::Create({.artifact = MakeFakeArtifact(options),
                               .engine = &engine,
                               .options = session});
  if (made.ok()) return {ErrorCode::kUsage, "no error"};
  return std::move(made).error();
}

TEST(Session, ArtifactsThatCannotRun) {
  FakeOptions options;
  options.steps = {{kPrefill, 7, kNone}};
  Error error = CreateError(options);
  EXPECT_EQ(error.code, ErrorCode::kBadInput);
  EXPECT_THAT(error.message, HasSubstr("none gives logits"));
  options = {};
  error = CreateError(options, {.prompt_step_tokens = 9});
  EXPECT_EQ(error.code, ErrorCode::kUsage);
  EXPECT_THAT(error.message, HasSubstr("no graph of 9 tokens a step; it has "
                                       "7, 1"));
}

}  // namespace
}  // namespace hexllm

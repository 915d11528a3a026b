#include "runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_engine.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using testing::FakeArtifactBuilder;
using testing::FakeEngine;
using testing::FakeOptions;
using testing::FakeReference;
using testing::FakeStep;
using ::testing::HasSubstr;
using testing::MakeFakeArtifact;

using Ids = std::vector<int32_t>;

constexpr GraphKind kPrefill = GraphKind::kPrefill;
constexpr GraphKind kKv = GraphKind::kKv;
constexpr LogitsRows kNone = LogitsRows::kNone;
constexpr LogitsRows kLast = LogitsRows::kLast;
constexpr LogitsRows kAll = LogitsRows::kAll;

GenerateOptions Greedy(std::optional<uint32_t> max_new_tokens = std::nullopt) {
  GenerateOptions options;
  options.sampler.temperature = 0;
  options.max_new_tokens = max_new_tokens;
  return options;
}

Ids Prompt(size_t tokens, uint32_t vocab = 37) {
  Ids ids;
  for (size_t i = 0; i < tokens; ++i)
    ids.push_back(static_cast<int32_t>((i * i * 5 + i + 3) % vocab));
  return ids;
}

// A fake engine with a session on it.
struct Fixture {
  explicit Fixture(FakeOptions options, SessionOptions session_options = {})
      : Fixture(MakeFakeArtifact(std::move(options)), session_options) {}
  explicit Fixture(std::shared_ptr<const artifact::Artifact> artifact,
                   SessionOptions session_options = {}) {
    auto made = Session::Create({.artifact = std::move(artifact),
                                 .engine = &engine,
                                 .options = session_options});
    if (!made.ok()) ADD_FAILURE() << made.error().message;
    session = std::move(made).value();
  }

  // Generates and returns the tokens; the result goes to `last`.
  Ids Generate(const GenerateOptions& options) {
    Ids ids;
    auto result = session->Generate(options, [&](int32_t id) {
      ids.push_back(id);
      return Result<TokenAction>(TokenAction::kContinue);
    });
    if (!result.ok()) {
      ADD_FAILURE() << result.error().message;
      return ids;
    }
    last = *result;
    return ids;
  }
  Ids Answer(std::span<const int32_t> prompt, const GenerateOptions& options) {
    const Status status = session->Prefill(prompt);
    if (!status.ok()) ADD_FAILURE() << status.error().message;
    return Generate(options);
  }

  FakeEngine engine;
  std::unique_ptr<Session> session;
  GenerateResult last;
};

std::vector<std::vector<float>> AllLogits(Session& session,
                                          std::span<const int32_t> ids) {
  std::vector<std::vector<float>> rows;
  const Status status =
      session.Logits(ids, [&](uint32_t position, std::span<const float> row) {
        EXPECT_EQ(position, rows.size());
        rows.emplace_back(row.begin(), row.end());
        return OkStatus();
      });
  if (!status.ok()) ADD_FAILURE() << status.error().message;
  return rows;
}

// Every set of graphs that an artifact may have.
struct ModeCase {
  std::string name;
  std::vector<FakeStep> steps;
  bool takes_context = true;  // can run prompts of C tokens and decode up to C
};

std::ostream& operator<<(std::ostream& out, const ModeCase& mode) {
  return out << mode.name;
}

const ModeCase kModes[] = {
    {"kv", {{kKv, 1, kAll}}},
    {"kv_last", {{kKv, 1, kLast}}},
    {"hybrid_1", {{kPrefill, 1, kAll}, {kKv, 1, kAll}}},
    {"hybrid_7_all", {{kPrefill, 7, kAll}, {kKv, 1, kAll}}},
    {"hybrid_7_last", {{kPrefill, 7, kLast}, {kKv, 1, kLast}}},
    {"hybrid_7_none", {{kPrefill, 7, kNone}, {kKv, 1, kAll}}},
    {"hybrid_32_all", {{kKv, 1, kAll}, {kPrefill, 32, kAll}}},
    {"hybrid_32_none", {{kPrefill, 32, kNone}, {kKv, 1, kLast}}},
    {"hybrid_64_all", {{kPrefill, 64, kAll}, {kKv, 1, kAll}}},
    {"many", {{kPrefill, 7, kAll}, {kPrefill, 32, kLast}, {kKv, 1, kAll}}},
    {"prefill_7_all", {{kPrefill, 7, kAll}}, false},
    {"prefill_7_last", {{kPrefill, 7, kLast}}, false},
    {"two_prefills", {{kPrefill, 5, kLast}, {kPrefill, 32, kNone}}, false},
};

class SessionModes : public ::testing::TestWithParam<ModeCase> {
 protected:
  FakeOptions Options() const {
    FakeOptions options;
    options.steps = GetParam().steps;
    return options;
  }
};

TEST_P(SessionModes, GreedyTokensEqualTheReference) {
  const FakeOptions options = Options();
  Fixture f(options);
  for (const size_t tokens : {1U, 2U, 6U, 7U, 8U, 14U, 15U, 31U, 32U, 33U}) {
    f.session->Reset();
    const Ids prompt = Prompt(tokens);
    EXPECT_EQ(f.Answer(prompt, Greedy(12)),
              FakeReference::Greedy(options, prompt, 12))
        << tokens << " prompt tokens";
    EXPECT_EQ(f.last.reason, FinishReason::kMaxNewTokens);
  }
}

TEST_P(SessionModes, LogitsOfEveryPositionEqualTheReference) {
  const FakeOptions options = Options();
  Fixture f(options);
  const size_t most = GetParam().takes_context ? options.context : 30;
  for (const size_t tokens : {size_t{1}, size_t{7}, size_t{20}, most}) {
    const Ids ids = Prompt(tokens);
    EXPECT_EQ(AllLogits(*f.session, ids), FakeReference::Logits(options, ids));
    EXPECT_TRUE(f.session->ids().empty());
  }
}

TEST_P(SessionModes, PromptsFillTheContextExactly) {
  const FakeOptions options = Options();
  for (const uint32_t left : {0U, 1U, 2U, 5U}) {
    Fixture f(options);
    const Ids prompt = Prompt(options.context - left);
    const Ids answer = f.Answer(prompt, Greedy());
    EXPECT_EQ(f.last.reason, FinishReason::kContextFull);
    const Ids expected = FakeReference::Greedy(options, prompt, answer.size());
    EXPECT_EQ(answer, expected);
    if (GetParam().takes_context) {
      EXPECT_EQ(answer.size(), left);
      EXPECT_EQ(f.session->ids().size(), options.context);
    }
    // Still full when asked again.
    EXPECT_EQ(f.Generate(Greedy()), Ids{});
    EXPECT_EQ(f.last.reason, FinishReason::kContextFull);
  }
}

TEST_P(SessionModes, GeneratesUpToTheContext) {
  const FakeOptions options = Options();
  Fixture f(options);
  const Ids prompt = Prompt(9);
  const Ids answer = f.Answer(prompt, Greedy());
  EXPECT_EQ(f.last.reason, FinishReason::kContextFull);
  EXPECT_EQ(answer, FakeReference::Greedy(options, prompt, answer.size()));
  if (GetParam().takes_context)
    EXPECT_EQ(answer.size() + 9, options.context);
  else  // 9 tokens and the answer but its last one must fit P columns
    EXPECT_GE(answer.size() + 9, options.context - 6);
}

TEST_P(SessionModes, TurnsAppendAndReuse) {
  const FakeOptions options = Options();
  Fixture f(options);
  const Ids first = Prompt(10);
  Ids text = first;
  const Ids answer = f.Answer(first, Greedy(5));
  text.insert(text.end(), answer.begin(), answer.end());
  const Ids second = {4, 8, 15};
  text.insert(text.end(), second.begin(), second.end());
  EXPECT_EQ(f.Answer(second, Greedy(5)),
            FakeReference::Greedy(options, text, 5));
  // A new text that shares 12 tokens with the old one.
  Ids other(text.begin(), text.begin() + 12);
  for (const int32_t id : {30, 31, 32, 33, 34, 1, 2, 3, 4}) other.push_back(id);
  const auto kept = f.session->ReplacePrompt(other);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(*kept, 12U);
  EXPECT_EQ(f.Generate(Greedy(9)), FakeReference::Greedy(options, other, 9));
  // The same text again: its last token is run for its logits.
  EXPECT_EQ(f.session->ReplacePrompt(other).value(), other.size() - 1);
  EXPECT_EQ(f.Generate(Greedy(9)), FakeReference::Greedy(options, other, 9));
  // A shorter one.
  EXPECT_EQ(f.session->ReplacePrompt(std::span(other).first(3)).value(), 2U);
  EXPECT_EQ(f.Generate(Greedy(4)),
            FakeReference::Greedy(options, std::span(other).first(3), 4));
}

INSTANTIATE_TEST_SUITE_P(Modes, SessionModes, ::testing::ValuesIn(kModes),
                         [](const auto& test) { return test.param.name; });

// Number formats, windows and shards do not change the tokens either.
struct FormCase {
  std::string name;
  FakeOptions options;
};

std::ostream& operator<<(std::ostream& out, const FormCase& form) {
  return out << form.name;
}

std::vector<FormCase> Forms() {
  FakeOptions wide;
  wide.kv_dtype = DType::kU16;
  wide.mask_dtype = DType::kU16;
  wide.rope_dtype = DType::kU16;
  wide.logits_dtype = DType::kU16;
  FakeOptions narrow;
  narrow.kv_dtype = DType::kU8;
  narrow.mask_dtype = DType::kU8;
  narrow.windows = {3};
  FakeOptions windows;
  windows.windows = {1, 0, 64, 63, 7};
  windows.layers = 6;
  FakeOptions shards = wide;
  shards.shards = 3;
  shards.layers = 5;
  FakeOptions flat;
  flat.groups = 1;
  flat.k_dim = 1;
  flat.v_dim = 1;
  flat.layers = 1;
  return {{"wide", wide},
          {"narrow", narrow},
          {"windows", windows},
          {"shards", shards},
          {"flat", flat}};
}

class SessionForms : public ::testing::TestWithParam<FormCase> {};

TEST_P(SessionForms, TokensAndLogitsEqualTheReference) {
  for (const uint32_t block : {1U, 7U, 32U}) {
    FakeOptions options = GetParam().options;
    options.steps = {{kPrefill, block, kAll}, {kKv, 1, kAll}};
    Fixture f(options);
    const Ids prompt = Prompt(23);
    EXPECT_EQ(AllLogits(*f.session, prompt),
              FakeReference::Logits(options, prompt));
    EXPECT_EQ(f.Answer(prompt, Greedy()),
              FakeReference::Greedy(options, prompt, options.context - 23));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, SessionForms, ::testing::ValuesIn(Forms()),
                         [](const auto& test) { return test.param.name; });

TEST(Session, UsesTheBlocksThatItSays) {
  FakeOptions options;
  options.context = 20;
  options.steps = {{kPrefill, 4, kAll}, {kPrefill, 8, kAll}, {kKv, 1, kAll}};
  {
    // At most 12 past tokens for a block of 8: 8, 8 and 3 single ones.
    Fixture f(options);
    ASSERT_TRUE(f.session->Prefill(Prompt(19)).ok());
    EXPECT_THAT(f.engine.faults.step_tokens, ElementsAre(8, 8, 1, 1, 1));
  }
  {
    // A padded block of 4 for the last 3.
    Fixture f(options, {.prompt_step_tokens = 4});
    ASSERT_TRUE(f.session->Prefill(Prompt(15)).ok());
    EXPECT_THAT(f.engine.faults.step_tokens, ElementsAre(4, 4, 4, 4));
  }
  {
    // A last token on its own is a single step.
    Fixture f(options, {.prompt_step_tokens = 4});
    ASSERT_TRUE(f.session->Prefill(Prompt(9)).ok());
    EXPECT_THAT(f.engine.faults.step_tokens, ElementsAre(4, 4, 1));
  }
  {
    // Without logits in the blocks the last token is a single step.
    options.steps = {{kPrefill, 4, kNone}, {kKv, 1, kAll}};
    Fixture f(options);
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
  Fixture f(options);
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
  Fixture f(options);
  EXPECT_EQ(f.Answer(prompt, Greedy()), Ids{});
  EXPECT_EQ(f.last.reason, FinishReason::kEndToken);
  EXPECT_EQ(f.last.new_tokens, 0U);
  EXPECT_EQ(f.last.end_id, options.generation.end_ids[0]);
  EXPECT_EQ(f.session->statistics().turns[0].new_tokens, 0U);
}

TEST(Session, LimitsEndTheAnswer) {
  Fixture f{FakeOptions{}};
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
  Fixture f(options);
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
  Fixture f(options);
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
  Fixture f(options);
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
  Fixture f{FakeOptions{}};
  const auto result = f.session->Generate(
      Greedy(), [](int32_t) { return Result(TokenAction::kContinue); });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
}

TEST(Session, EngineErrorsResetIt) {
  const FakeOptions options;
  Fixture f(options);
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
  Fixture f(options);
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
  Fixture f{FakeOptions{}};
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
  Fixture f(options);
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
    Fixture f(options);
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
  EXPECT_EQ(
      Fixture(options).session->DefaultGenerateOptions().sampler.temperature,
      0.8f);
  options.generation.temperature = 0.5f;
  options.generation.top_k = 3;
  options.generation.top_p = 0.25f;
  options.generation.min_p = 0.125f;
  options.generation.repetition_penalty = 1.5f;
  const Fixture f(options);
  const auto sampler = f.session->DefaultGenerateOptions().sampler;
  EXPECT_EQ(sampler.temperature, 0.5f);
  EXPECT_EQ(sampler.top_k, 3);
  EXPECT_EQ(sampler.top_p, 0.25f);
  EXPECT_EQ(sampler.min_p, 0.125f);
  EXPECT_EQ(sampler.repetition_penalty, 1.5f);
}

TEST(Session, StatisticsCountTurns) {
  Fixture f{FakeOptions{}};
  f.Answer(Prompt(10), Greedy(4));
  ASSERT_TRUE(f.session->ReplacePrompt(Prompt(12)).ok());
  f.Generate(Greedy(2));
  f.Generate(Greedy(1));
  const Statistics statistics = f.session->statistics();
  ASSERT_EQ(statistics.turns.size(), 2U);
  EXPECT_EQ(statistics.turns[0].prompt_tokens, 10U);
  EXPECT_EQ(statistics.turns[0].reused_tokens, 0U);
  EXPECT_EQ(statistics.turns[0].new_tokens, 4U);
  EXPECT_EQ(statistics.turns[1].reused_tokens, 10U);
  EXPECT_EQ(statistics.turns[1].prompt_tokens, 2U);
  EXPECT_EQ(statistics.turns[1].new_tokens, 3U);
  EXPECT_GT(statistics.turns[0].first_token_seconds, 0);
  EXPECT_GT(statistics.turns[0].decode_seconds, 0);
  EXPECT_GT(statistics.load_seconds, 0);
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

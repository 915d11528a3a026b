// The same tokens and logits come out whatever graphs, number formats, windows
// and shards an artifact has.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/support/fake_session.h"

namespace hexllm {
namespace {

using testing::AllLogits;
using testing::FakeOptions;
using testing::FakeReference;
using testing::FakeSession;
using testing::FakeStep;
using testing::Greedy;
using testing::Ids;
using testing::Prompt;

constexpr GraphKind kPrefill = GraphKind::kPrefill;
constexpr GraphKind kKv = GraphKind::kKv;
constexpr LogitsRows kNone = LogitsRows::kNone;
constexpr LogitsRows kLast = LogitsRows::kLast;
constexpr LogitsRows kAll = LogitsRows::kAll;

const SessionOptions kOn = {.lookahead = LookaheadMode::kOn};

// Every set of graphs that an artifact may have, and how they are used.
struct ModeCase {
  std::string name;
  std::vector<FakeStep> steps;
  bool takes_context = true;  // can run prompts of C tokens and decode up to C
  std::optional<artifact::LookaheadShape> lookahead = {};
  SessionOptions session = {};
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
    {"shift_pointer",
     {{kPrefill, 7, kAll}, {kKv, 1, kAll}},
     true,
     {},
     {.kv_update = KvUpdate::kShiftPointer}},
    {"lookahead_3_2_2", {{kKv, 1, kAll}}, true, {{3, 2, 2}}, kOn},
    {"lookahead_5_4_3",
     {{kPrefill, 7, kLast}, {kKv, 1, kLast}},
     true,
     {{5, 4, 3}},
     {.kv_update = KvUpdate::kShiftPointer, .lookahead = LookaheadMode::kOn}},
    {"lookahead_2_1_1",
     {{kPrefill, 7, kNone}, {kKv, 1, kAll}},
     true,
     {{2, 1, 1}},
     kOn},
    {"lookahead_auto",
     {{kKv, 1, kAll}},
     true,
     {{3, 2, 2}},
     {.lookahead = LookaheadMode::kAuto}},
    {"lookahead_alone", {{kPrefill, 5, kLast}}, false, {{4, 2, 2}}, kOn},
};

class SessionModes : public ::testing::TestWithParam<ModeCase> {
 protected:
  FakeOptions Options() const {
    FakeOptions options;
    options.steps = GetParam().steps;
    options.lookahead = GetParam().lookahead;
    return options;
  }
};

TEST_P(SessionModes, GreedyTokensEqualTheReference) {
  const FakeOptions options = Options();
  FakeSession f(options, GetParam().session);
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
  FakeSession f(options, GetParam().session);
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
    FakeSession f(options, GetParam().session);
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
  FakeSession f(options, GetParam().session);
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
  FakeSession f(options, GetParam().session);
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

// Also with two words, of which many guesses come true.
TEST_P(SessionModes, SampledTokensAreThoseOfPlainDecoding) {
  for (const uint32_t vocab : {2U, 37U}) {
    FakeOptions options = Options();
    options.vocab = vocab;
    FakeSession f(options, GetParam().session);
    options.lookahead.reset();
    FakeSession plain(options);
    const Ids prompt = Prompt(12, vocab);
    for (const uint64_t seed : {1U, 2U}) {
      f.session->Reset();
      plain.session->Reset();
      GenerateOptions generate;
      generate.sampler = {.temperature = 1,
                          .top_k = 9,
                          .repetition_penalty = 1.2f,
                          .seed = seed};
      const Ids expected = plain.Answer(prompt, generate);
      EXPECT_EQ(f.Answer(prompt, generate), expected);
      EXPECT_EQ(f.last.reason, plain.last.reason);
    }
    const DecodeCounts counts = f.session->statistics().turns.back().steps;
    if (GetParam().session.lookahead == LookaheadMode::kOn && vocab == 2) {
      EXPECT_GT(counts.accepted, counts.lookahead / 8);
    } else if (!GetParam().lookahead) {
      EXPECT_EQ(counts.accepted, 0U);
    }
  }
}

// End tokens, limits and stops are met to the token.
TEST_P(SessionModes, EndsWherePlainDecodingEnds) {
  FakeOptions options = Options();
  options.vocab = 4;
  const Ids prompt = Prompt(9, options.vocab);
  const Ids free = FakeReference::Greedy(options, prompt, 30);
  auto last_first = free.begin();  // of each token's first place the last
  for (auto at = free.begin(); at != free.end(); ++at)
    if (std::find(free.begin(), at, *at) == at) last_first = at;
  options.generation.end_ids = {*last_first};
  FakeSession f(options, GetParam().session);
  EXPECT_EQ(f.Answer(prompt, Greedy()), Ids(free.begin(), last_first));
  EXPECT_EQ(f.last.reason, FinishReason::kEndToken);
  EXPECT_EQ(f.session->ids().size(), prompt.size() + f.last.new_tokens);
  f.session->Reset();
  ASSERT_TRUE(f.session->Prefill(prompt).ok());
  Ids pieces;
  for (uint32_t n = 0; n < 5; ++n) {
    GenerateOptions generate = Greedy(n);
    generate.ignore_end_ids = true;
    Ids piece = f.Generate(generate);
    EXPECT_EQ(piece.size(), n);
    generate.max_new_tokens.reset();
    generate.max_seq_len = f.session->ids().size() + n;
    const Ids more = f.Generate(generate);
    EXPECT_EQ(more.size(), n);
    pieces.insert(pieces.end(), piece.begin(), piece.end());
    pieces.insert(pieces.end(), more.begin(), more.end());
  }
  EXPECT_EQ(pieces, Ids(free.begin(), free.begin() + 20));
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
  FakeOptions embedding = shards;
  embedding.host_embedding = true;
  FakeOptions flat;
  flat.groups = 1;
  flat.k_dim = 1;
  flat.v_dim = 1;
  flat.layers = 1;
  return {{"wide", wide},     {"narrow", narrow},       {"windows", windows},
          {"shards", shards}, {"embedding", embedding}, {"flat", flat}};
}

class SessionForms : public ::testing::TestWithParam<FormCase> {};

TEST_P(SessionForms, TokensAndLogitsEqualTheReference) {
  for (const uint32_t block : {1U, 7U, 32U}) {
    FakeOptions options = GetParam().options;
    options.steps = {{kPrefill, block, kAll}, {kKv, 1, kAll}};
    FakeSession f(options);
    const Ids prompt = Prompt(23);
    EXPECT_EQ(AllLogits(*f.session, prompt),
              FakeReference::Logits(options, prompt));
    EXPECT_EQ(f.Answer(prompt, Greedy()),
              FakeReference::Greedy(options, prompt, options.context - 23));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, SessionForms, ::testing::ValuesIn(Forms()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace hexllm

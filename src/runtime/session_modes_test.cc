// The same tokens and logits come out whatever graphs, number formats, windows
// and shards an artifact has.
#include <gtest/gtest.h>

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
  FakeSession f(options);
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
  FakeSession f(options);
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
    FakeSession f(options);
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
  FakeSession f(options);
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
  FakeSession f(options);
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

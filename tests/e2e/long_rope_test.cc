// longrope (Phi-4-mini): which factors a sequence uses when it grows beyond
// original_max_position_embeddings, 64 in the model of tests/data. That prompts
// on either side give the right logits is in golden_logits_test.cc.
#include <gtest/gtest.h>

#include "tests/e2e/run_model.h"
#include "tests/support/golden_tensors.h"

namespace hexllm::testing {
namespace {

constexpr size_t kShort = 40;  // tokens, below the limit
constexpr size_t kNearly = 60;

LoadedModel Phi(const std::string& setting = "") {
  CompileOptions options = AllLogits(16, 128);
  if (!setting.empty()) options.source.overrides = {setting};
  return LoadModel(DataPath("models/phi4_mini"), options);
}

std::vector<int32_t> LongPrompt() {
  return GoldenTensors(DataPath("models/phi4_mini/golden.safetensors"))
      .Ints("p2.input_ids");
}

std::vector<int32_t> First(const std::vector<int32_t>& ids, size_t count) {
  return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(LongRope, APromptThatOutgrowsTheLimitIsRunAgain) {
  const LoadedModel model = Phi();
  ASSERT_NE(model.session, nullptr);
  const std::vector<int32_t> ids = LongPrompt();
  ASSERT_TRUE(model.session->Prefill(First(ids, kShort)).ok());
  const auto within = model.session->ReplacePrompt(First(ids, kNearly));
  ASSERT_TRUE(within.ok());
  EXPECT_EQ(*within, kShort);
  const auto beyond = model.session->ReplacePrompt(ids);
  ASSERT_TRUE(beyond.ok());
  EXPECT_EQ(*beyond, 0u);
  // Back again, and the other way round.
  const auto back = model.session->ReplacePrompt(First(ids, kShort));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, 0u);
}

TEST(LongRope, AnAnswerThatOutgrowsTheLimitKeepsItsFactors) {
  const std::vector<int32_t> prompt = First(LongPrompt(), kNearly);
  const LoadedModel model = Phi();
  // The short factors for all lengths.
  const LoadedModel short_only =
      Phi(R"(rope_scaling={"type":"longrope",)"
          R"("short_factor":[1.0,1.0,1.0,1.05,1.1,1.25],)"
          R"("long_factor":[1.0,1.0,1.0,1.05,1.1,1.25]})");
  ASSERT_NE(model.session, nullptr);
  ASSERT_NE(short_only.session, nullptr);
  constexpr uint32_t kNew = 32;
  const auto made = GreedyTokens(*model.session, prompt, kNew);
  EXPECT_EQ(made, GreedyTokens(*short_only.session, prompt, kNew));
  // The same text as a prompt has the long ones.
  std::vector<int32_t> whole = prompt;
  whole.insert(whole.end(), made.begin(), made.end());
  EXPECT_NE(AllLogitsOf(*model.session, whole),
            AllLogitsOf(*short_only.session, whole));
}

}  // namespace
}  // namespace hexllm::testing

// SmolLM2-135M-Instruct (Q4_1 GGUF) against Hugging Face transformers in fp32:
// token ids, logits, greedy tokens. Skipped where scripts/get-model has not
// fetched the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/mapped_file.h"
#include "compile/text_assets.h"
#include "runtime/conversation.h"
#include "tests/e2e/run_model.h"
#include "tests/support/golden_tensors.h"
#include "text/tokenizer.h"

namespace hexllm::testing {
namespace {

constexpr const char* kPrompts[] = {"chat", "story", "code"};

std::string ModelPath() {
  return std::string(HEXLLM_SOURCE_DIR) +
         "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

class RealModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(ModelPath()))
      GTEST_SKIP() << ModelPath() << " is not there; run scripts/get-model";
  }
  const GoldenTensors golden_{
      DataPath("real/smollm2_135m_q4_1.golden.safetensors")};
};

TEST_F(RealModel, TokenIdsOfThePromptsMatch) {
  const auto file =
      MappedFile::Open(DataPath("real/smollm2_135m_q4_1.golden.json"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto json = ParseJson(AsText(file->bytes()));
  ASSERT_TRUE(json.ok()) << json.error().message;
  auto data = LoadTokenizer(ModelPath());
  ASSERT_TRUE(data.ok()) << data.error().message;
  const auto tokenizer = Tokenizer::Create(std::move(*data));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  for (const std::string name : kPrompts) {
    const auto ids = tokenizer->Encode((*json)[name]["text"].get<std::string>(),
                                       AddSpecial::kNo);
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    EXPECT_EQ(*ids, golden_.Ints(name + ".input_ids")) << name;
    EXPECT_EQ(tokenizer->Decode(golden_.Ints(name + ".greedy48"),
                                SpecialTokens::kKeep),
              (*json)[name]["greedy_text"].get<std::string>())
        << name;
  }
}

// Logits of the golden's 16 likeliest tokens at each position, and the order of
// the first two where they are apart.
TEST_F(RealModel, TopLogitsMatchAtEveryPosition) {
  constexpr size_t kTop = 16;
  constexpr float kTolerance = 2e-3f;
  constexpr float kMargin = 0.01f;
  const LoadedModel model = LoadModel(ModelPath(), AllLogits(16, 64));
  ASSERT_NE(model.session, nullptr);
  for (const std::string name : kPrompts) {
    const std::vector<int32_t> ids = golden_.Ints(name + ".input_ids");
    const std::vector<int32_t> top_ids = golden_.Ints(name + ".top16_ids");
    const std::vector<float> top_logits =
        golden_.Floats(name + ".top16_logits");
    ASSERT_EQ(top_ids.size(), ids.size() * kTop);
    float worst = 0;
    const Status status = model.session->Logits(
        ids, [&](uint32_t position, std::span<const float> row) {
          const size_t first = position * kTop;
          for (size_t i = first; i < first + kTop; ++i)
            worst =
                std::max(worst, std::fabs(row[static_cast<size_t>(top_ids[i])] -
                                          top_logits[i]));
          const auto best = static_cast<int32_t>(
              std::max_element(row.begin(), row.end()) - row.begin());
          if (top_logits[first] - top_logits[first + 1] > kMargin) {
            EXPECT_EQ(best, top_ids[first]) << name << " position " << position;
          }
          return OkStatus();
        });
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_LE(worst, kTolerance) << name;
    RecordProperty("worst_logit_error_" + name, std::to_string(worst));
  }
}

TEST_F(RealModel, GreedyTokensMatch) {
  CompileOptions options;
  options.max_context_len = 256;
  const LoadedModel model = LoadModel(ModelPath(), options);
  ASSERT_NE(model.session, nullptr);
  for (const std::string name : kPrompts) {
    const auto expected = golden_.Ints(name + ".greedy48");
    EXPECT_EQ(GreedyTokens(*model.session, golden_.Ints(name + ".input_ids"),
                           static_cast<uint32_t>(expected.size())),
              expected)
        << name;
  }
}

TEST_F(RealModel, NamesTheCapitalOfFrance) {
  const LoadedModel model = LoadModel(ModelPath(), {});
  ASSERT_NE(model.session, nullptr);
  const auto conversation = Conversation::Create(*model.session);
  ASSERT_TRUE(conversation.ok()) << conversation.error().message;
  GenerateOptions options = model.session->DefaultGenerateOptions();
  options.sampler.temperature = 0;
  std::string answer;
  const auto result =
      (*conversation)
          ->Chat("What is the capital of France?", options,
                 [&](std::string_view text) -> Result<TokenAction> {
                   answer += text;
                   return TokenAction::kContinue;
                 });
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_THAT(answer, ::testing::HasSubstr("Paris"));
  EXPECT_EQ(result->reason, FinishReason::kEndToken);
}

}  // namespace
}  // namespace hexllm::testing

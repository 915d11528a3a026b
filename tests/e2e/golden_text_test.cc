// From text to text with the checkpoints and tokenizers as Meta and llama2.c
// publish them: ids of the prompt, greedy ids, and what they say.
#include <gtest/gtest.h>

#include "base/json.h"
#include "compile/text_assets.h"
#include "tests/e2e/run_model.h"
#include "tests/support/golden_tensors.h"
#include "text/tokenizer.h"

namespace hexllm::testing {
namespace {

struct Case {
  const char* name;
  const char* checkpoint;
  const char* decoder_model;
  const char* tokenizer;
};

constexpr Case kCases[] = {
    {"stories110m", "stories110M.pt", "stories110m",
     "tiny_llama2c/tokenizer.model"},
    {"stories110m", "stories110M.pt", "", "tiny_llama2c/tokenizer.bin"},
    {"stories110m", "stories110M.pt", "", "tiny_llama2c/tokenizer_et.bin"},
    {"llama3_2_meta", "consolidated.00.pth", "llama3_2-1b_instruct",
     "tiny_tiktoken/tokenizer.model"},
};

class GoldenText : public ::testing::TestWithParam<Case> {};

TEST_P(GoldenText, PromptsAndContinuationsAgree) {
  const std::string folder = DataPath(std::string("models/") + GetParam().name);
  const auto golden = ReadJsonFile(folder + "/golden_text.json");
  ASSERT_TRUE(golden.ok()) << golden.error().message;
  CompileOptions options;
  options.source.decoder_model = GetParam().decoder_model;
  options.source.tokenizer_path =
      DataPath(std::string("tokenizers/") + GetParam().tokenizer);
  options.max_context_len = 128;
  options.prefill_ar_len = 16;
  const std::string path = folder + "/" + GetParam().checkpoint;
  const LoadedModel model = LoadModel(path, options);
  ASSERT_NE(model.session, nullptr);
  auto data = LoadTokenizer(options.source.tokenizer_path);
  ASSERT_TRUE(data.ok()) << data.error().message;
  const auto tokenizer = Tokenizer::Create(std::move(*data));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  for (const Json& entry : *golden) {
    const auto ids =
        tokenizer->Encode(entry["prompt"].get<std::string>(), AddSpecial::kYes);
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, entry["ids"].get<std::vector<int32_t>>());
    const auto expected = entry["greedy"].get<std::vector<int32_t>>();
    const auto made = GreedyTokens(*model.session, *ids,
                                   static_cast<uint32_t>(expected.size()));
    EXPECT_EQ(made, expected) << entry["prompt"];
    EXPECT_EQ(tokenizer->Decode(made, SpecialTokens::kKeep),
              entry["text"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenText, ::testing::ValuesIn(kCases),
                         [](const auto& instance) {
                           return std::string(instance.param.name) +
                                  std::to_string(instance.index);
                         });

}  // namespace
}  // namespace hexllm::testing

// What is gathered from the files beside weights, for each kind of tokenizer.
#include "compile/text_assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/golden_tensors.h"
#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

using testing::DataPath;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

// The assets of a model of tests/data with this tokenizer.
Result<TextAssets> Load(const std::string& model,
                        const std::string& tokenizer) {
  models::SourceOptions options;
  options.decoder_model = "llama3_2-1b_instruct";
  if (!tokenizer.empty())
    options.tokenizer_path = DataPath("tokenizers/" + tokenizer);
  HX_ASSIGN_OR_RETURN(const models::ModelSource source,
                      models::OpenModel(DataPath("models/" + model), options));
  return LoadTextAssets(source);
}

TEST(TextAssets, Llama3GetsItsTemplateAndEndTokensFromTiktoken) {
  const auto assets = Load("llama3_2_meta", "tiny_tiktoken/tokenizer.model");
  ASSERT_TRUE(assets.ok()) << assets.error().message;
  ASSERT_TRUE(assets->chat_template.has_value());
  EXPECT_THAT(*assets->chat_template, HasSubstr("<|start_header_id|>"));
  // <|end_of_text|>, <|eom_id|>, <|eot_id|>
  EXPECT_THAT(assets->generation.end_ids, ElementsAre(345, 352, 353));
  EXPECT_EQ(assets->generation.bos_id, 344);
  ASSERT_FALSE(assets->special_tokens.empty());
  EXPECT_EQ(assets->special_tokens[0].name, "bos_token");
  EXPECT_EQ(assets->special_tokens[0].text, "<|begin_of_text|>");
}

TEST(TextAssets, StoriesHaveNoTemplate) {
  for (const char* file : {"tokenizer.model", "tokenizer.bin"}) {
    const auto assets =
        Load("stories110m/stories110M.pt", std::string("tiny_llama2c/") + file);
    ASSERT_TRUE(assets.ok()) << assets.error().message;
    EXPECT_FALSE(assets->chat_template.has_value());
    EXPECT_EQ(assets->generation.bos_id, 1);
    EXPECT_THAT(assets->generation.end_ids, ::testing::Contains(2));
  }
}

TEST(TextAssets, WithoutATokenizerThereAreIdsOnly) {
  const auto assets = Load("llama3_2_meta", "");
  ASSERT_TRUE(assets.ok()) << assets.error().message;
  EXPECT_FALSE(assets->tokenizer.has_value());
}

TEST(TextAssets, ATokenizerOfAnotherSizeIsRefused) {
  const auto assets = Load("llama3_2_meta", "tiny_llama2c/tokenizer.model");
  ASSERT_FALSE(assets.ok());
  EXPECT_THAT(assets.error().message, HasSubstr("found 512"));
}

// A model of tests/data with other rows and this tokenizer.
Result<TextAssets> LoadWithVocab(int64_t vocab, const std::string& tokenizer) {
  models::SourceOptions options;
  options.decoder_model = "llama3_2-1b_instruct";
  options.tokenizer_path = DataPath("tokenizers/" + tokenizer);
  HX_ASSIGN_OR_RETURN(
      models::ModelSource source,
      models::OpenModel(DataPath("models/llama3_2_meta"), options));
  source.config.vocab = vocab;
  return LoadTextAssets(source);
}

TEST(TextAssets, AddedTokensWithoutARowAreText) {
  const auto assets = LoadWithVocab(599, "tiny_tiktoken/tokenizer.model");
  ASSERT_TRUE(assets.ok()) << assets.error().message;
  const auto& added = assets->tokenizer->added_tokens;
  ASSERT_EQ(added.size(), 255u);
  for (const AddedToken& token : added) EXPECT_LT(token.id, 599);
  // BOS is 344, the first behind the pieces.
  const auto none = LoadWithVocab(344, "tiny_tiktoken/tokenizer.model");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kBadInput);
  // Pieces are not left out.
  const auto pieces = LoadWithVocab(511, "tiny_llama2c/tokenizer.model");
  ASSERT_FALSE(pieces.ok());
  EXPECT_THAT(pieces.error().message, HasSubstr("found 512"));
}

TEST(TextAssets, PaddingHasNoLimitButItsMultiple) {
  const auto assets = LoadWithVocab(1536, "tiny_llama2c/tokenizer.model");
  EXPECT_TRUE(assets.ok()) << assets.error().message;
  EXPECT_FALSE(LoadWithVocab(1537, "tiny_llama2c/tokenizer.model").ok());
}

TEST(LoadTokenizer, TakesFoldersAndFiles) {
  for (const char* name :
       {"tiny_llama2c", "tiny_llama2c/tokenizer.bin", "tiny_tiktoken",
        "tiny_bpe_llama3", "tiny_bpe_llama3/tokenizer.json"}) {
    const auto data =
        LoadTokenizer(DataPath(std::string("tokenizers/") + name));
    EXPECT_TRUE(data.ok()) << data.error().message;
  }
  const auto gguf = LoadTokenizer(DataPath("gguf/llama/llama-h64-F16.gguf"));
  EXPECT_TRUE(gguf.ok()) << gguf.error().message;
  const auto none = LoadTokenizer(DataPath("models/llama3_2_1b"));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(none.error().message, HasSubstr("tokenizer.model"));
}

TEST(LoadChatTemplate, ABareTemplateGetsTheTokensOfTheTokenizer) {
  TempDir dir;
  std::filesystem::copy_file(
      DataPath("tokenizers/tiny_tiktoken/tokenizer.model"),
      dir.File("tokenizer.model"));
  dir.Write("chat_template.jinja", "{{ bos_token }}");
  const auto assets = LoadChatTemplate(dir.path());
  ASSERT_TRUE(assets.ok()) << assets.error().message;
  EXPECT_EQ(*assets->chat_template, "{{ bos_token }}");
  ASSERT_FALSE(assets->special_tokens.empty());
  EXPECT_EQ(assets->special_tokens[0].text, "<|begin_of_text|>");
}

TEST(LoadChatTemplate, GivesABareTokenizerTheTemplateOfItsFamily) {
  const auto assets = LoadChatTemplate(DataPath("tokenizers/tiny_tiktoken"));
  ASSERT_TRUE(assets.ok()) << assets.error().message;
  EXPECT_THAT(*assets->chat_template, HasSubstr("<|eot_id|>"));
  // A checkpoint that says it has none keeps none.
  TempDir dir;
  std::filesystem::copy_file(
      DataPath("tokenizers/tiny_tiktoken/tokenizer.model"),
      dir.File("tokenizer.model"));
  dir.Write("tokenizer_config.json", "{}");
  const auto none = LoadChatTemplate(dir.path());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace hexllm

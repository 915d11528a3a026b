#include "compile/end_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A tokenizer with the special token <|end|> (5) and the plain one <p> (6), and
// a template that puts `behind` after an answer.
TextAssets Assets(const std::string& behind) {
  TextAssets assets;
  assets.tokenizer = TokenizerData();
  assets.tokenizer->added_tokens.push_back(
      {.id = 5, .content = "<|end|>", .special = true});
  assets.tokenizer->added_tokens.push_back({.id = 6, .content = "<p>"});
  assets.chat_template =
      "{% for m in messages %}<"
      "{{ m.role }}>{{ m.content }}" +
      behind + "{% endfor %}";
  return assets;
}

TEST(TemplateEndTokens, TheSpecialTokenBehindTheAnswerEndsIt) {
  TextAssets assets = Assets("<|end|>\n");
  assets.generation.end_ids = {2};
  ASSERT_TRUE(AddTemplateEndTokens(assets).ok());
  EXPECT_THAT(assets.generation.end_ids, ElementsAre(2, 5));
  ASSERT_TRUE(AddTemplateEndTokens(assets).ok());
  EXPECT_THAT(assets.generation.end_ids, ElementsAre(2, 5)) << "added twice";
}

TEST(TemplateEndTokens, OtherTextDoesNot) {
  for (const char* behind : {"\n<|end|>", "<p>", ""}) {
    TextAssets assets = Assets(behind);
    ASSERT_TRUE(AddTemplateEndTokens(assets).ok());
    EXPECT_THAT(assets.generation.end_ids, IsEmpty()) << behind;
  }
}

TEST(TemplateEndTokens, ATemplateThatRefusesTheChatAddsNothing) {
  TextAssets assets = Assets("");
  assets.chat_template = "{{ raise_exception('no') }}";
  EXPECT_TRUE(AddTemplateEndTokens(assets).ok());
  EXPECT_THAT(assets.generation.end_ids, IsEmpty());
}

TEST(TemplateEndTokens, ATemplateThatDoesNotParseIsAnError) {
  TextAssets assets = Assets("");
  assets.chat_template = "{% if %}";
  EXPECT_FALSE(AddTemplateEndTokens(assets).ok());
}

}  // namespace
}  // namespace hexllm

#include "text/chat_template_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hexllm {
namespace {

using ::testing::HasSubstr;

std::vector<NamedChatTemplate> FromConfig(const char* config) {
  const Json json = Json::parse(config);
  ChatTemplateFiles files;
  files.tokenizer_config = &json;
  auto templates = FindChatTemplates(files);
  EXPECT_TRUE(templates.ok())
      << (templates.ok() ? "" : templates.error().message);
  return templates.ok() ? *templates : std::vector<NamedChatTemplate>();
}

std::string ErrorOf(const char* config) {
  const Json json = Json::parse(config);
  ChatTemplateFiles files;
  files.tokenizer_config = &json;
  const auto templates = FindChatTemplates(files);
  return templates.ok() ? "no error" : templates.error().message;
}

TEST(ChatTemplateSource, ReadsOneTemplateOrSeveral) {
  const auto one = FromConfig(R"({"chat_template":"T"})");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].name, "default");
  EXPECT_EQ(one[0].source, "T");
  const auto two = FromConfig(
      R"({"chat_template":[{"name":"default","template":"D"},{"name":"tool_use","template":"U"}]})");
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[1].name, "tool_use");
  EXPECT_EQ(two[1].source, "U");
  EXPECT_TRUE(FromConfig("{}").empty());
  EXPECT_TRUE(FromConfig(R"({"chat_template":null})").empty());
}

TEST(ChatTemplateSource, JinjaFilesReplaceTheConfig) {
  const Json config = Json::parse(R"({"chat_template":"old"})");
  ChatTemplateFiles files;
  files.tokenizer_config = &config;
  files.chat_template_jinja = "new";
  files.additional = {{"rag", "R"}};
  const auto templates = FindChatTemplates(files);
  ASSERT_TRUE(templates.ok());
  ASSERT_EQ(templates->size(), 2U);
  EXPECT_EQ((*templates)[0].source, "new");
  EXPECT_EQ((*templates)[1].name, "rag");
}

TEST(ChatTemplateSource, RefusesOtherShapes) {
  EXPECT_THAT(ErrorOf(R"({"chat_template":5})"),
              HasSubstr("expected a string or a list, found a whole number"));
  EXPECT_THAT(ErrorOf(R"({"chat_template":["x"]})"),
              HasSubstr("chat_template[0]"));
  EXPECT_THAT(ErrorOf(R"({"chat_template":[{"name":"a"}]})"),
              HasSubstr("'template'"));
  EXPECT_THAT(
      ErrorOf(
          R"({"chat_template":[{"name":"a","template":""},{"name":"a","template":""}]})"),
      HasSubstr("given twice"));
}

TEST(ChatTemplateSource, ChoosesAsTransformersDoes) {
  const std::vector<NamedChatTemplate> templates = {
      {"default", "D"}, {"tool_use", "T"}, {"rag", "R"}};
  const auto choose = [&](std::string_view wanted, ChatTools tools) {
    const auto chosen = ChooseChatTemplate(templates, wanted, tools);
    return chosen.ok() ? (*chosen)->source : chosen.error().message;
  };
  EXPECT_EQ(choose("", ChatTools::kNone), "D");
  EXPECT_EQ(choose("", ChatTools::kGiven), "T");
  EXPECT_EQ(choose("rag", ChatTools::kGiven), "R");
  EXPECT_EQ(choose("x", ChatTools::kNone),
            "no chat template is called 'x'; there are: 'default', 'tool_use', "
            "'rag'");
}

TEST(ChatTemplateSource, SaysWhenThereIsNothingToChoose) {
  const auto none = ChooseChatTemplate({}, "", ChatTools::kNone);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kBadInput);
  const std::vector<NamedChatTemplate> only = {{"rag", "R"}};
  const auto no_default = ChooseChatTemplate(only, "", ChatTools::kGiven);
  ASSERT_FALSE(no_default.ok());
  EXPECT_THAT(no_default.error().message, HasSubstr("choose one of: 'rag'"));
}

TEST(ChatTemplateSource, ReadsTokens) {
  const Json config = Json::parse(
      R"({"bos_token":"<s>","eos_token":{"content":"</s>","lstrip":false},"pad_token":null})");
  const auto tokens = ReadChatTokens(config);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->bos_token, "<s>");
  EXPECT_EQ(tokens->eos_token, "</s>");
  EXPECT_FALSE(tokens->pad_token.has_value());
  EXPECT_FALSE(tokens->unk_token.has_value());
  EXPECT_FALSE(ReadChatTokens(Json::parse(R"({"bos_token":[1]})")).ok());
}

}  // namespace
}  // namespace hexllm

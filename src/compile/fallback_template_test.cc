#include "compile/fallback_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "text/chat_template.h"

namespace hexllm {
namespace {

using ::testing::HasSubstr;

TokenizerData With(std::vector<std::string> tokens) {
  TokenizerData data;
  data.pieces.Add("a");
  for (std::string& token : tokens) {
    AddedToken& added = data.added_tokens.emplace_back();
    added.id = static_cast<int32_t>(data.added_tokens.size());
    added.content = std::move(token);
    added.special = true;
  }
  return data;
}

Result<std::string> Render(const FallbackTemplate& row, const Json& messages) {
  ChatTokens tokens;
  tokens.bos_token = "<B>";
  ChatRenderOptions options;
  options.add_generation_prompt = true;
  options.now = std::tm{};
  options.now->tm_year = 125;
  options.now->tm_mon = 3;
  options.now->tm_mday = 9;
  const auto parsed = ChatTemplate::Parse(std::string(row.source), tokens);
  EXPECT_TRUE(parsed.ok()) << row.family;
  return parsed->Render(messages, options);
}

const Json kChat = {{{"role", "user"}, {"content", "Hi"}},
                    {{"role", "assistant"}, {"content", "Yes?"}},
                    {{"role", "user"}, {"content", "2+2?"}}};

// One row a family; a new family must say here what it renders.
const std::map<std::string_view, std::string> kExpected = {
    {"llama3",
     "<B><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\nYes?<|eot_id|>"
     "<|start_header_id|>user<|end_header_id|>\n\n2+2?<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"gemma",
     "<B><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nYes?"
     "<end_of_turn>\n<start_of_turn>user\n2+2?<end_of_turn>\n"
     "<start_of_turn>model\n"},
    {"chatml",
     "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes?<|im_end|>\n"
     "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n"},
    {"granite",
     "<|start_of_role|>system<|end_of_role|>Knowledge Cutoff Date: April 2024."
     "\nToday's Date: April 09, 2025.\nYou are Granite, developed by IBM. You "
     "are a helpful AI assistant.<|end_of_text|>\n"
     "<|start_of_role|>user<|end_of_role|>Hi<|end_of_text|>\n"
     "<|start_of_role|>assistant<|end_of_role|>Yes?<|end_of_text|>\n"
     "<|start_of_role|>user<|end_of_role|>2+2?<|end_of_text|>\n"
     "<|start_of_role|>assistant<|end_of_role|>"},
    {"phi",
     "<|user|>Hi<|end|><|assistant|>Yes?<|end|><|user|>2+2?<|end|>"
     "<|assistant|>"},
    {"glm", "<|user|>\nHi<|assistant|>\nYes?<|user|>\n2+2?<|assistant|>"},
};

TEST(FallbackTemplate, EachFamilyRendersItsForm) {
  ASSERT_EQ(FallbackTemplates().size(), kExpected.size());
  for (const FallbackTemplate& row : FallbackTemplates()) {
    const auto expected = kExpected.find(row.family);
    ASSERT_NE(expected, kExpected.end()) << row.family;
    const auto text = Render(row, kChat);
    ASSERT_TRUE(text.ok()) << text.error().message;
    EXPECT_EQ(*text, expected->second) << row.family;
    std::vector<std::string> tokens(row.needs.begin(), row.needs.end());
    const auto* found = FindFallbackTemplate(With(tokens));
    ASSERT_NE(found, nullptr) << row.family;
    EXPECT_EQ(found->family, row.family);
    // All of its tokens are needed.
    tokens.pop_back();
    EXPECT_EQ(FindFallbackTemplate(With(tokens)), nullptr) << row.family;
  }
}

// Phi-3 has Phi-4-mini's tokens and another template.
TEST(FallbackTemplate, Phi3GetsNone) {
  TokenizerData data;
  for (const char* piece : {"<|user|>", "<|assistant|>", "<|end|>", ""})
    data.pieces.Add(piece);
  ASSERT_NE(FindFallbackTemplate(data), nullptr);
  EXPECT_EQ(FindFallbackTemplate(data)->family, "phi");
  data.pieces.Add("<|placeholder1|>");
  EXPECT_EQ(FindFallbackTemplate(data), nullptr);
}

TEST(FallbackTemplate, MessagesThatAreNoStringsAreRefused) {
  const Json parts = {{{"type", "text"}, {"text", "Hi"}}};
  const Json bad[] = {
      {{"role", "user"}},
      {{"content", "Hi"}},
      {{"role", 1}, {"content", "Hi"}},
      {{"role", "user"}, {"content", nullptr}},
      {{"role", "user"}, {"content", parts}},
  };
  for (const FallbackTemplate& row : FallbackTemplates()) {
    for (const Json& message : bad) {
      const auto text = Render(row, Json::array({message}));
      ASSERT_FALSE(text.ok()) << row.family << message;
      EXPECT_THAT(text.error().message, HasSubstr("that are strings"));
    }
  }
}

TEST(FallbackTemplate, GivesTheCallerWhatGemmaRefuses) {
  const auto* gemma =
      FindFallbackTemplate(With({"<start_of_turn>", "<end_of_turn>"}));
  ASSERT_NE(gemma, nullptr);
  const auto system =
      Render(*gemma, Json::array({{{"role", "system"}, {"content", "x"}}}));
  ASSERT_FALSE(system.ok());
  EXPECT_EQ(system.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(system.error().message, HasSubstr("no role system"));
  const auto twice = Render(*gemma, {{{"role", "user"}, {"content", "x"}},
                                     {{"role", "user"}, {"content", "y"}}});
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().message, HasSubstr("must alternate"));
}

}  // namespace
}  // namespace hexllm

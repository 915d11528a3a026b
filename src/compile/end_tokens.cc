#include "compile/end_tokens.h"

#include <algorithm>

#include "runtime/artifact_text.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace hexllm {
namespace {

// Not a word of any template or vocabulary.
constexpr std::string_view kMark = "qzxvkjwq";

// The text behind the assistant's answer in a rendered chat; empty when the
// template does not take the chat.
Result<std::string> TextBehindAnswer(const TextAssets& assets) {
  HX_ASSIGN_OR_RETURN(
      const ChatTemplate chat,
      ChatTemplate::Parse(*assets.chat_template,
                          ChatTokensFrom(assets.special_tokens)));
  const Json messages = {{{"role", "user"}, {"content", "Hi"}},
                         {{"role", "assistant"}, {"content", kMark}}};
  ChatRenderOptions options;
  options.now = std::tm{};  // for templates that print a date
  const auto text = chat.Render(messages, options);
  if (!text.ok()) return std::string();
  const size_t at = text->find(kMark);
  return at == std::string::npos ? std::string()
                                 : text->substr(at + kMark.size());
}

// The special token at the very start of `text`.
std::optional<int32_t> LeadingSpecialToken(const TokenizerData& data,
                                           std::string_view text) {
  std::optional<int32_t> best;
  size_t length = 0;
  for (const AddedToken& token : data.added_tokens) {
    if (token.special && token.content.size() > length &&
        text.starts_with(token.content)) {
      best = token.id;
      length = token.content.size();
    }
  }
  return best;
}

}  // namespace

Status AddTemplateEndTokens(TextAssets& assets) {
  if (!assets.chat_template || !assets.tokenizer) return OkStatus();
  HX_ASSIGN_OR_RETURN(const std::string behind, TextBehindAnswer(assets));
  const auto id = LeadingSpecialToken(*assets.tokenizer, behind);
  auto& ends = assets.generation.end_ids;
  if (id && std::find(ends.begin(), ends.end(), *id) == ends.end())
    ends.push_back(*id);
  return OkStatus();
}

namespace {

// llama2.c writes its control tokens between line feeds; its models begin a new
// text with BOS where others would write EOS.
constexpr std::string_view kEndSpellings[] = {
    "</s>",       "<eos>",         "<|end_of_text|>", "<|eot_id|>",
    "<|eom_id|>", "<|endoftext|>", "\n</s>\n",        "\n<s>\n",
};

}  // namespace

std::optional<std::string> SpellingOf(const TokenizerData& data, int32_t id) {
  for (const AddedToken& token : data.added_tokens) {
    if (token.id == id) return token.content;
  }
  if (id < 0 || static_cast<size_t>(id) >= data.pieces.size())
    return std::nullopt;
  return std::string(data.pieces[static_cast<size_t>(id)]);
}

void AddTokenizerEndTokens(TextAssets& assets) {
  const TokenizerData& data = *assets.tokenizer;
  if (!assets.generation.bos_id && !data.prefix_ids.empty())
    assets.generation.bos_id = data.prefix_ids.front();
  if (!assets.generation.end_ids.empty()) return;
  std::vector<int32_t> controls = data.control_ids;
  for (const AddedToken& token : data.added_tokens) {
    if (token.special) controls.push_back(token.id);
  }
  for (const int32_t id : controls) {
    const auto spelling = SpellingOf(data, id);
    if (spelling &&
        std::find(std::begin(kEndSpellings), std::end(kEndSpellings),
                  *spelling) != std::end(kEndSpellings))
      assets.generation.end_ids.push_back(id);
  }
}

}  // namespace hexllm

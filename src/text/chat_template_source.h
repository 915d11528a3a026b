// Finds the chat templates and special tokens of a checkpoint in what its files
// say, given as plain data. Used by the compiler and the command line before
// ChatTemplate::Parse. It opens no file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/chat_template.h"

namespace hexllm {

// A template and its name: "default" where there is only one; models with
// several also have e.g. "tool_use" and "rag".
struct NamedChatTemplate {
  std::string name;
  std::string source;
};

// Where the templates of a Hugging Face checkpoint may stand.
struct ChatTemplateFiles {
  const Json* tokenizer_config =
      nullptr;  // tokenizer_config.json, or chat_template.json of older
                // processors
  std::optional<std::string> chat_template_jinja;  // chat_template.jinja
  std::vector<NamedChatTemplate>
      additional;  // additional_chat_templates/NAME.jinja
};

// The templates of a checkpoint, in the order of the files; none when it has
// none. As in transformers, .jinja files replace what tokenizer_config.json
// says in `chat_template` (a string, or a list of objects with `name` and
// `template`). kBadInput when that member has another shape or a name stands
// there twice.
Result<std::vector<NamedChatTemplate>> FindChatTemplates(
    const ChatTemplateFiles& files);

enum class ChatTools { kNone, kGiven };

// Chooses as transformers does: the template called `wanted`; else, with tools,
// "tool_use"; else "default". An empty `wanted` names none. kUsage, with the
// names there are, when `wanted` is not among them; kBadInput when nothing is
// left to choose.
Result<const NamedChatTemplate*> ChooseChatTemplate(
    std::span<const NamedChatTemplate> templates, std::string_view wanted,
    ChatTools tools);

// bos_token, eos_token, pad_token and unk_token of tokenizer_config.json or
// special_tokens_map.json: strings, or objects with `content`. kBadInput for
// other shapes.
Result<ChatTokens> ReadChatTokens(const Json& tokenizer_config);

}  // namespace hexllm

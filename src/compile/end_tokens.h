// End tokens that generation_config does not name: the special token that the
// chat template puts behind an assistant's answer ("<|im_end|>", "<|eot_id|>"),
// and for checkpoints without such a file those of the tokenizer.
#pragma once

#include "base/status.h"
#include "compile/text_assets.h"

namespace hexllm {

// Renders a short chat with assets.chat_template and adds the special token
// that directly follows the assistant's text to assets.generation.end_ids. Does
// nothing without a template or a tokenizer, when no special token stands
// there, or when the template refuses the chat: what its author allows is for
// the user's own chat to find out. kBadInput for a template that does not
// parse.
Status AddTemplateEndTokens(TextAssets& assets);

// For a checkpoint that names no end tokens: adds the control tokens of its
// tokenizer whose spelling says that a text ends, and sets generation.bos_id to
// what the tokenizer puts before a text.
void AddTokenizerEndTokens(TextAssets& assets);

// The published spelling of `id`, or nothing.
std::optional<std::string> SpellingOf(const TokenizerData& data, int32_t id);

}  // namespace hexllm

// End tokens that only the chat template knows: the special token that it puts
// behind an assistant's answer ("<|im_end|>", "<|eot_id|>"). Checkpoints often
// name just one of several in generation_config.
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

}  // namespace hexllm

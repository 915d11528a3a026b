// Chat templates for checkpoints that come without one (Meta's, which predate
// templates; bare tokenizers). Chosen by the tokens of the tokenizer: who has
// "<|start_header_id|>" was trained on Llama 3's form. Used by
// compile/text_assets.cc; a checkpoint's own template always wins.
#pragma once

#include <span>
#include <string_view>

#include "text/tokenizer_data.h"

namespace hexllm {

struct FallbackTemplate {
  std::string_view family;  // for people and tests
  // Tokens that the vocabulary must have, all of them.
  std::span<const std::string_view> needs;
  std::string_view source;  // Jinja
  // A token of another family that has all of these too; empty = none.
  std::string_view lacks = {};
};

// All rows; of two that fit, the earlier counts.
std::span<const FallbackTemplate> FallbackTemplates();

// The first row whose tokens `data` has, or null.
const FallbackTemplate* FindFallbackTemplate(const TokenizerData& data);

}  // namespace hexllm

// What belongs to a model besides its graphs: tokenizer, chat template,
// defaults of generation. Gathered from the files beside the weights or from
// GGUF metadata, checked against the model, and put into the artifact. Where
// nothing says whether there is a chat template (no tokenizer_config.json), the
// tokenizer's family gives one (compile/fallback_template.h).
#pragma once

#include <optional>
#include <string>

#include "artifact/manifest.h"
#include "base/status.h"
#include "models/model_source.h"
#include "text/tokenizer_data.h"

namespace hexllm {

struct TextAssets {
  std::optional<TokenizerData> tokenizer;    // none: the model serves ids only
  std::optional<std::string> chat_template;  // Jinja text
  std::vector<artifact::NamedText>
      special_tokens;  // what templates call bos_token, eos_token, ...
  artifact::GenerationDefaults generation;
};

// Reads everything. Added tokens beyond the embedding table are left out.
// kBadInput names file and key; also when tokenizer and vocabulary do not fit
// together: another id beyond the table, or more rows than ids that padding to
// a multiple of 64 cannot explain.
Result<TextAssets> LoadTextAssets(const models::ModelSource& source);

// The tokenizer alone, from a model folder or file, or from a tokenizer file.
// kUnsupported when there is none.
Result<TokenizerData> LoadTokenizer(const std::string& path);

// The chat template and what goes with it, from a model folder or file.
// kUnsupported when there is none.
Result<TextAssets> LoadChatTemplate(const std::string& path);

}  // namespace hexllm

// The tokenizer files that stand beside weights. Used by
// compile/text_assets.cc. GGUF files carry theirs inside.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// Reads one tokenizer file of any kind but GGUF. Errors name the file.
Result<TokenizerData> ReadTokenizerFile(const std::string& path);

// The first of tokenizer.json, tokenizer.model and tokenizer.bin in `folder`;
// nothing when there is none.
Result<std::optional<TokenizerData>> FindTokenizer(const std::string& folder);

}  // namespace hexllm

// The tokenizers that GGUF calls "llama": SentencePiece vocabularies without
// their file. Used by TokenizerDataFromGguf alone.
#pragma once

#include "base/status.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// Puts the SentencePiece model together again and reads it. kBadInput when
// scores or types do not fit the tokens.
Result<TokenizerData> SentencePieceFromGguf(const GgufTokenizer& gguf);

}  // namespace hexllm

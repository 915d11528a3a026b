// The table behind the GGUF key tokenizer.ggml.pre: which patterns split the
// text for a byte-level BPE. Used by TokenizerDataFromGguf. A new name is one
// row; a new family of patterns is one row more. Source: the names and defaults
// of llama.cpp (src/llama-vocab.cpp), the patterns of the models'
// tokenizer.json.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hexllm {

// Patterns that are applied one after the other, each match on its own
// (SplitBehavior::kIsolated).
struct GgufPatterns {
  std::array<std::string_view, 5> patterns;  // unused ones are empty
  bool nfc = false;  // the family's tokenizer.json normalizes to NFC
};

struct GgufPreTokenizer {
  std::string_view name;
  const GgufPatterns* patterns;
  bool ignore_merges = false;
  bool add_bos = false;  // when the file does not say
};

// The row of a name, or null.
const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name);

}  // namespace hexllm

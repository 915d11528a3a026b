// Reads the components of a tokenizer.json (normalizer, pre_tokenizer,
// post_processor, decoder) into the lists of TokenizerData. Used by
// ParseTokenizerJson alone.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// Each appends to the lists of `data`. kBadInput for members of the wrong type
// or value; kUnsupported naming the type.
Status ReadNormalizer(const Json& json, TokenizerData& data);
Status ReadPreTokenizer(const Json& json, TokenizerData& data);
// Reduces the processors to the ids that they put around a single text.
Status ReadPostProcessor(const Json& json, TokenizerData& data);
Status ReadDecoder(const Json& json, TokenizerData& data);

// The pattern of GPT-2, which the ByteLevel pre-tokenizer uses unless told not
// to (use_regex).
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace hexllm

// Makes the merges of a BPE: from published pairs of spellings (tokenizer.json,
// GGUF), or from ranked pieces alone (tiktoken, llama2.c).
#pragma once

#include <vector>

#include "base/status.h"
#include "text/string_table.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// `halves` holds the left and right spelling of each merge, one after the
// other. kBadInput naming a merge whose parts or result are not in `pieces`.
Result<std::vector<Merge>> ResolveMerges(const StringTable& pieces,
                                         const StringTable& halves);

// No rank: nothing is merged into the piece.
inline constexpr uint32_t kUnrankedPiece = UINT32_MAX;

// Sets data.merges and data.merge_ranks to all pairs of pieces that spell a
// piece, each with the rank of that piece in `ranks` (one a piece).
// kUnsupported when there are more than kMaxMerges.
Status DeriveMerges(const std::vector<uint32_t>& ranks, TokenizerData& data);

}  // namespace hexllm

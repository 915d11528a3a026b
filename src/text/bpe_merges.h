// Makes the merges of a BPE: from published pairs of spellings (tokenizer.json,
// GGUF), or from ranked pieces alone (tiktoken, llama2.c).
#pragma once

#include <fmt/format.h>

#include <vector>

#include "base/status.h"
#include "text/bpe.h"
#include "text/string_table.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// `halves` holds the left and right spelling of each merge, one after the
// other. kBadInput naming a merge whose parts or result are not in `pieces`.
Result<std::vector<Merge>> ResolveMerges(const StringTable& pieces,
                                         const StringTable& halves);

// Of a vocabulary whose reading or use takes the square of a piece.
inline constexpr size_t kMaxPieceBytes = 4096;

// Sets data.merges and data.merge_ranks to all pairs of pieces that spell a
// piece, each with the rank of that piece in `ranks` (one a piece).
// kUnsupported when there are more than kMaxMerges or a piece is longer
// than kMaxPieceBytes.
Status DeriveMerges(const std::vector<uint32_t>& ranks, TokenizerData& data);

// kBadInput naming the first byte whose spelling (`spell(byte)`) is no piece:
// text with it would lose it.
template <typename Spell>
Status CheckBytePieces(const StringTable& pieces, Spell spell) {
  PieceIndex index;
  index.Build(pieces);
  for (int byte = 0; byte < 256; ++byte) {
    if (index.Find(pieces, spell(static_cast<uint8_t>(byte))) == kNoToken)
      return Error{ErrorCode::kBadInput,
                   fmt::format("expected a token for each of the 256 bytes, "
                               "found none for 0x{:02X}",
                               byte)};
  }
  return OkStatus();
}

}  // namespace hexllm

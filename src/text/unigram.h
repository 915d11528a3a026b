// UnigramModel: the most probable cut of a word into pieces. Used by Tokenizer
// on each word of the pre-tokenizer. Source: Kudo 2018 (arXiv 1804.10959), with
// the rules of Hugging Face tokenizers for unknown characters.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/bpe.h"
#include "text/string_table.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// Immutable and thread-safe.
class UnigramModel {
 public:
  // The longest piece, in bytes: bounds the time for one character.
  static constexpr size_t kMaxPieceBytes = 1024;

  // Takes the vocabulary out of `data`. kBadInput when there is not one finite
  // score for each piece, or no unknown token; kUnsupported for longer pieces.
  static Result<UnigramModel> Create(TokenizerData& data);

  // Appends the ids of `word` (valid UTF-8). Neighbouring unknown characters
  // become one unknown token, or their bytes where the vocabulary has them.
  void Encode(std::string_view word, std::vector<int32_t>& out) const;

  // The id with this spelling, or kNoToken.
  int32_t Find(std::string_view spelling) const {
    return index_.Find(pieces_, spelling);
  }

 private:
  // The best way to reach a place in the word: the last piece and where it
  // begins.
  struct Step {
    double score = 0;
    size_t begin = 0;
    int32_t id = kNoToken;  // kNoToken: not reached yet
  };
  void Relax(std::string_view word, size_t at, std::vector<Step>& steps) const;
  void AppendUnknown(std::string_view text, std::vector<int32_t>& out) const;

  StringTable pieces_;
  PieceIndex index_;
  std::vector<double> scores_;
  std::vector<int32_t> sorted_;  // ids of the pieces, sorted by their bytes
  double unknown_score_ = 0;
  int32_t unk_id_ = kNoToken;
  bool byte_fallback_ = false;
};

}  // namespace hexllm

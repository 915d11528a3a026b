// PieceDecoder: the decoder list of a tokenizer, worked out once for each id.
// Used by Tokenizer::Decode and the StreamDetokenizer. Decoder steps act on
// single tokens up to the point where tokens are joined, so a token's share of
// the text is a constant; what remains at run time is joining, and stripping at
// the start of the text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/string_table.h"
#include "text/text_matcher.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// How the shares become text.
enum class PieceJoin : uint8_t {
  kBytes,         // bytes one after the other, read as UTF-8
  kText,          // text one after the other
  kTextSpaced,    // text with a space between two tokens
  kByteFallback,  // text; a run of byte tokens is one text when it is valid
                  // UTF-8, else one U+FFFD a token
};

// Immutable and thread-safe.
class PieceDecoder {
 public:
  // Spelling of every id, as published; empty = no such id. kUnsupported for an
  // order of steps that cannot be worked out token by token.
  static Result<PieceDecoder> Create(std::span<const DecoderStep> steps,
                                     const StringTable& spellings);

  PieceJoin join() const { return join_; }
  size_t size() const { return shares_.size(); }

  // The share of `id` (< size()) in a text that it is not the first token of. A
  // byte token's share is its byte.
  std::string_view Share(size_t id) const { return shares_[id]; }
  // The same for the first token of a text.
  std::string_view FirstShare(size_t id) const;

  // True when `id` is a byte token <0xAB> (only with kByteFallback).
  bool IsByteToken(size_t id) const {
    return join_ == PieceJoin::kByteFallback && is_byte_[id];
  }

  // Appends the text of a run of byte tokens: their characters, U+FFFD for each
  // byte that is in none; with kByteFallback that for all bytes when one is in
  // none.
  void AppendByteRun(std::string_view run, std::string& out) const;

  // The character that is stripped from the start of the text, and how often at
  // most.
  std::string_view strip_char() const { return strip_char_; }
  int32_t strip_count() const { return strip_count_; }

 private:
  class Builder;

  PieceJoin join_ = PieceJoin::kTextSpaced;
  StringTable shares_;
  StringTable first_shares_;  // empty when they do not differ
  std::vector<bool> is_byte_;
  bool keeps_characters_ = false;  // kBytePieces
  std::string strip_char_;
  int32_t strip_count_ = 0;
};

}  // namespace hexllm

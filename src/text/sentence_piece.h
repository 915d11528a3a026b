// SentencePieceModel: the SentencePiece library as the model of a tokenizer.
// The only place that touches it. Used by Tokenizer on a whole text, which the
// library normalizes and cuts itself.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/bpe.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// Immutable and thread-safe.
class SentencePieceModel {
 public:
  // Takes the vocabulary and the serialized model out of `data`. kBadInput for
  // a model that the library refuses or that ParseSentencePiece does.
  static Result<SentencePieceModel> Create(TokenizerData& data);

  SentencePieceModel(SentencePieceModel&&) noexcept;
  SentencePieceModel& operator=(SentencePieceModel&&) noexcept;
  ~SentencePieceModel();

  // Appends the ids of `text` (valid UTF-8). kBadInput when the library fails.
  Status Encode(std::string_view text, std::vector<int32_t>& out) const;

  // The id with this spelling, or kNoToken.
  int32_t Find(std::string_view spelling) const;

 private:
  struct Impl;
  explicit SentencePieceModel(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace hexllm

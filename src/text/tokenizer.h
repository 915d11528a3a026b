// Tokenizer: text to ids and back, exactly as Hugging Face tokenizers does with
// the same tokenizer.json. Used by the runtime, the compiler's calibration and
// the command line. Made from TokenizerData (text/tokenizer_data.h). Not for
// streaming output: see text/detokenizer.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer_data.h"

namespace hexllm {

class PieceDecoder;

// Whether Encode adds what the post-processor adds (BOS, EOS). Special tokens
// *in* the text are recognised either way.
enum class AddSpecial : uint8_t { kNo, kYes };
// Whether Decode leaves out the special tokens.
enum class SpecialTokens : uint8_t { kKeep, kSkip };

// Immutable and thread-safe; cheap to move. All state of a call is its own.
class Tokenizer {
 public:
  // Compiles patterns and builds the lookup tables. kBadInput for inconsistent
  // data or a malformed pattern, kUnsupported for a pattern or a decoder order
  // that cannot be run.
  static Result<Tokenizer> Create(TokenizerData data);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // The ids of `text`. Invalid UTF-8 is read as U+FFFD, one for each maximal
  // invalid part. Time is O(n log n). kUsage for a text longer than
  // kMaxTextBytes; kBadInput when a pattern of the tokenizer exceeds its step
  // limit.
  Result<std::vector<int32_t>> Encode(std::string_view text,
                                      AddSpecial add_special) const;

  // The text of `ids`: valid UTF-8, with U+FFFD for what is not a character.
  // Ids that no token has count as nothing.
  std::string Decode(std::span<const int32_t> ids, SpecialTokens special) const;

  // The bytes that `id` contributes to a text that it is not the first token
  // of; may be part of a character. Empty for an id that no token has. The view
  // lives as long as the tokenizer.
  std::string_view PieceBytes(int32_t id) const&;
  std::string_view PieceBytes(int32_t id) && = delete;

  // One more than the largest id.
  int32_t vocab_size() const;

  // The id whose published spelling ("<|im_end|>", "Ġthe") is `token`.
  std::optional<int32_t> FindToken(std::string_view token) const;

  // True for control tokens; false for ids out of range.
  bool IsSpecial(int32_t id) const;

  // For the StreamDetokenizer.
  const PieceDecoder& decoder() const&;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace hexllm

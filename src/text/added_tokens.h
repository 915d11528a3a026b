// AddedTokens: finds the added tokens of a tokenizer in a text. Used by
// Tokenizer, twice: in the text as given, then in what is left of it after
// normalization.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/normalizer.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// A set of byte strings with the leftmost longest search over it.
class StringTrie {
 public:
  StringTrie() : nodes_(1) {}

  // The value (>= 0) of `key`; the later one counts. Seal before Longest.
  void Add(std::string_view key, int32_t value);
  // Makes the searchable form.
  void Seal();

  struct Found {
    size_t bytes = 0;  // 0 = nothing
    int32_t value = -1;
  };
  // The longest key that `text` has at byte `at`.
  Found Longest(std::string_view text, size_t at) const;
  // The first byte from `at` where a key may begin, or text.size().
  size_t NextCandidate(std::string_view text, size_t at) const;

  bool empty() const { return nodes_.size() == 1; }

 private:
  struct Edge {
    uint8_t byte;
    uint32_t target;
  };
  struct Node {
    int32_t value = -1;
    std::vector<Edge> edges;  // sorted by byte once sealed
  };
  std::vector<Node> nodes_;
  bool begins_[256] = {};
};

enum class AddedTokenStage : uint8_t { kGivenText, kNormalizedText };

// Immutable and thread-safe.
class AddedTokens {
 public:
  // A part of the text: an added token, or (id kNoToken) what stands between
  // two.
  struct Part {
    size_t begin;
    size_t end;
    int32_t id;
  };

  // Later tokens win over earlier ones with the same content. Errors as
  // Normalizer::Apply.
  static Result<AddedTokens> Create(std::span<const AddedToken> tokens,
                                    const Normalizer& normalizer);

  bool Any(AddedTokenStage stage) const { return !Trie(stage).empty(); }

  // Cuts `text` (valid UTF-8) at the tokens of `stage`, into `parts`
  // (replaced). Text parts are not empty. Tokens with lstrip or rstrip cover
  // white space too. Time is O(n) for tokens of bounded length.
  void Cut(AddedTokenStage stage, std::string_view text,
           std::vector<Part>& parts) const;

 private:
  const StringTrie& Trie(AddedTokenStage stage) const {
    return stage == AddedTokenStage::kGivenText ? given_ : normalized_;
  }

  StringTrie given_;
  StringTrie normalized_;
  std::vector<AddedToken> tokens_;  // the tries' values are indices into it
};

}  // namespace hexllm

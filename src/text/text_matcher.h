// TextMatcher: finds a TextPattern (string, regular expression or kind of
// character) in a text. Used by the Split pre-tokenizer and the Replace
// normalizer and decoder.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/regex.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// The bytes [begin, end) of a text. Texts are at most kMaxTextBytes long.
struct TextSpan {
  uint32_t begin;
  uint32_t end;
};

// A text in pieces: matches and what lies between them.
struct MatchedSpan {
  TextSpan span;
  bool is_match;
};

// Immutable and thread-safe.
class TextMatcher {
 public:
  // As Regex::Compile; also kBadInput for an empty string pattern.
  static Result<TextMatcher> Create(const TextPattern& pattern);

  // False only when `text` surely has no match; cheaper than finding out.
  bool MayMatch(std::string_view text) const {
    return pattern_.kind != PatternKind::kString ||
           text.find(pattern_.text) != std::string_view::npos;
  }

  // Cuts `text` (valid UTF-8) into matches and gaps, in order and without
  // holes, into `out` (replaced). Gaps are not empty; matches of a regular
  // expression may be. Errors as Regex::Find.
  Status Cut(std::string_view text, RegexScratch& scratch,
             std::vector<MatchedSpan>& out) const;

 private:
  TextMatcher(TextPattern pattern, std::optional<Regex> regex);

  TextPattern pattern_;
  std::optional<Regex> regex_;
};

struct Replacement {
  std::string_view content;
  size_t max_bytes;  // of the whole result
};

// `text` with each match of `matcher` replaced. kBadInput when the result would
// be longer than max_bytes.
Result<std::string> ReplaceMatches(const TextMatcher& matcher,
                                   std::string_view text,
                                   const Replacement& replacement,
                                   RegexScratch& scratch);

// How long a text of `given_bytes` may become by normalization and
// pre-tokenization. The longest legitimate growth is 18-fold (U+FDFA in NFKC);
// more is a hostile tokenizer. At most kMaxTextBytes.
size_t MaxRewrittenBytes(size_t given_bytes);

// The error for a text that became longer.
Error TextGrewTooLong(size_t max_bytes);

}  // namespace hexllm

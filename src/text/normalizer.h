// Normalizer: the compiled list of normalizer steps of a tokenizer. Used by
// Tokenizer on the text between added tokens, and on the contents of added
// tokens that are looked for in normalized text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/text_matcher.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// Immutable and thread-safe.
class Normalizer {
 public:
  static Result<Normalizer> Create(std::span<const NormalizerStep> steps);

  // True when there is nothing to do.
  bool IsIdentity() const { return steps_.empty(); }

  // The normalized form of `text` (valid UTF-8). kBadInput when a pattern
  // exceeds its step limit or the text grows beyond MaxRewrittenBytes.
  Result<std::string> Apply(std::string_view text, RegexScratch& scratch) const;

 private:
  struct Step {
    NormalizerStep what;
    std::optional<TextMatcher> matcher;  // for kReplace
  };
  struct Limits {
    RegexScratch& regex;
    size_t max_bytes;
  };
  static Result<std::string> ApplyStep(const Step& step, std::string_view text,
                                       const Limits& limits);

  std::vector<Step> steps_;
};

}  // namespace hexllm

// Regex: the patterns of tokenizer.json, matched with PCRE2 (the one wrapper of
// that library). Patterns are written for Oniguruma's Ruby syntax and are
// translated first (text/onig_syntax.h). Used by normalizers and
// pre-tokenizers. Patterns and subjects are hostile: steps and memory of a
// match are bounded.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hexllm {

// What a matching thread needs: reusable for any Regex, by one thread at a
// time.
class RegexScratch {
 public:
  RegexScratch();
  RegexScratch(RegexScratch&&) noexcept;
  RegexScratch& operator=(RegexScratch&&) noexcept;
  ~RegexScratch();

 private:
  friend class Regex;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A compiled pattern. Immutable and thread-safe.
class Regex {
 public:
  struct Match {
    size_t begin;
    size_t end;
  };

  // kBadInput for a malformed pattern, kUnsupported for a construct that PCRE2
  // has no equal for; both name the pattern.
  static Result<Regex> Compile(std::string_view pattern);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // The leftmost match in `subject` (valid UTF-8) that begins at byte `from` or
  // later. Lookbehind sees what is before. kBadInput when the pattern takes
  // more steps than any sane one: the tokenizer is hostile.
  Result<std::optional<Match>> Find(std::string_view subject, size_t from,
                                    RegexScratch& scratch) const;

  // Calls visit(begin, end) for each match from left to right. An empty match
  // that touches the match before it is passed over, as Oniguruma's find_iter
  // does.
  template <typename Visit>
  Status ForEachMatch(std::string_view subject, RegexScratch& scratch,
                      Visit&& visit) const {
    std::optional<size_t> last_end;
    for (size_t from = 0; from <= subject.size();) {
      HX_ASSIGN_OR_RETURN(const std::optional<Match> match,
                          Find(subject, from, scratch));
      if (!match) break;
      if (match->begin == match->end && last_end == match->end) {
        from = NextChar(subject, from);
        continue;
      }
      visit(match->begin, match->end);
      from = match->end;
      last_end = match->end;
    }
    return OkStatus();
  }

 private:
  struct Impl;
  explicit Regex(std::unique_ptr<const Impl> impl);
  static size_t NextChar(std::string_view subject, size_t at);

  std::unique_ptr<const Impl> impl_;
};

}  // namespace hexllm

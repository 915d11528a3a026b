#include "text/text_matcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/unicode.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

TextSpan MakeSpan(size_t begin, size_t end) {
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

// Appends matches with the gaps before them.
class Cutter {
 public:
  explicit Cutter(std::vector<MatchedSpan>& out) : out_(out) { out_.clear(); }

  void Match(size_t begin, size_t end) {
    Gap(begin);
    out_.push_back({MakeSpan(begin, end), true});
    done_ = end;
  }
  void Gap(size_t end) {
    if (end > done_) out_.push_back({MakeSpan(done_, end), false});
  }

 private:
  std::vector<MatchedSpan>& out_;
  size_t done_ = 0;
};

template <typename Predicate>
void CutAtChars(std::string_view text, Predicate predicate, Cutter& cutter) {
  ForEachChar(text, [&](uint32_t c, size_t begin, size_t end) {
    if (predicate(c)) cutter.Match(begin, end);
  });
}

void CutAtString(std::string_view text, std::string_view needle,
                 Cutter& cutter) {
  for (size_t at = text.find(needle); at != std::string_view::npos;
       at = text.find(needle, at + needle.size())) {
    cutter.Match(at, at + needle.size());
  }
}

}  // namespace

TextMatcher::TextMatcher(TextPattern pattern, std::optional<Regex> regex)
    : pattern_(std::move(pattern)), regex_(std::move(regex)) {}

Result<TextMatcher> TextMatcher::Create(const TextPattern& pattern) {
  if (pattern.kind == PatternKind::kString && pattern.text.empty()) {
    return Error{ErrorCode::kBadInput, "a pattern is the empty string"};
  }
  if (pattern.kind != PatternKind::kRegex)
    return TextMatcher(pattern, std::nullopt);
  HX_ASSIGN_OR_RETURN(Regex regex, Regex::Compile(pattern.text));
  return TextMatcher(pattern, std::move(regex));
}

Status TextMatcher::Cut(std::string_view text, RegexScratch& scratch,
                        std::vector<MatchedSpan>& out) const {
  Cutter cutter(out);
  switch (pattern_.kind) {
    case PatternKind::kString:
      CutAtString(text, pattern_.text, cutter);
      break;
    case PatternKind::kRegex:
      HX_RETURN_IF_ERROR(regex_->ForEachMatch(
          text, scratch,
          [&](size_t begin, size_t end) { cutter.Match(begin, end); }));
      break;
    case PatternKind::kNumeric:
      CutAtChars(text, IsNumeric, cutter);
      break;
    case PatternKind::kWhiteSpace:
      CutAtChars(text, IsWhiteSpace, cutter);
      break;
    case PatternKind::kPunctuation:
      CutAtChars(text, IsPunctuation, cutter);
      break;
  }
  cutter.Gap(text.size());
  return OkStatus();
}

Result<std::string> ReplaceMatches(const TextMatcher& matcher,
                                   std::string_view text,
                                   const Replacement& replacement,
                                   RegexScratch& scratch) {
  if (!matcher.MayMatch(text)) return std::string(text);
  std::vector<MatchedSpan> spans;
  HX_RETURN_IF_ERROR(matcher.Cut(text, scratch, spans));
  std::string out;
  out.reserve(text.size());
  for (const auto& [span, is_match] : spans) {
    out.append(is_match ? replacement.content
                        : text.substr(span.begin, span.end - span.begin));
    if (out.size() > replacement.max_bytes)
      return TextGrewTooLong(replacement.max_bytes);
  }
  return out;
}

size_t MaxRewrittenBytes(size_t given_bytes) {
  constexpr size_t kSmallText = size_t{1} << 20;
  constexpr size_t kGrowth = 32;
  if (given_bytes > kMaxTextBytes / kGrowth) return kMaxTextBytes;
  return std::max(kSmallText, given_bytes * kGrowth);
}

Error TextGrewTooLong(size_t max_bytes) {
  return Error{ErrorCode::kBadInput,
               fmt::format("the tokenizer's steps make the text longer than {} "
                           "bytes: its replacements are not sane",
                           max_bytes)};
}

}  // namespace hexllm

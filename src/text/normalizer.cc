#include "text/normalizer.h"

#include "text/byte_level.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

std::string Strip(std::string_view text, const NormalizerStep& step) {
  size_t begin = text.size();  // of the first and after the last character that
                               // is no white space
  size_t end = 0;
  ForEachChar(text, [&](uint32_t c, size_t at, size_t next) {
    if (IsWhiteSpace(c)) return;
    if (end == 0) begin = at;
    end = next;
  });
  if (end == 0)
    return step.left || step.right ? std::string() : std::string(text);
  if (!step.left) begin = 0;
  if (!step.right) end = text.size();
  return std::string(text.substr(begin, end - begin));
}

std::string StripAccents(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEachChar(text, [&](uint32_t c, size_t begin, size_t end) {
    if (!IsMark(c)) out.append(text.substr(begin, end - begin));
  });
  return out;
}

// Dropped and blanked by SentencePiece's nmt_nfkc rules.
bool IsNmtDropped(uint32_t c) {
  return (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
         c == 0x7F || c == 0x8F || c == 0x9F;
}
bool IsNmtSpace(uint32_t c) {
  return c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
         c == 0x2581 || c == 0xFEFF || c == kReplacementChar;
}

std::string CleanNmt(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEachChar(text, [&](uint32_t c, size_t begin, size_t end) {
    if (IsNmtDropped(c)) return;
    out.append(IsNmtSpace(c) ? std::string_view(" ")
                             : text.substr(begin, end - begin));
  });
  return out;
}

std::string ByteMap(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  AppendByteLevel(text, out);
  return out;
}

}  // namespace

Result<Normalizer> Normalizer::Create(std::span<const NormalizerStep> steps) {
  Normalizer normalizer;
  for (const NormalizerStep& step : steps) {
    Step& compiled = normalizer.steps_.emplace_back();
    compiled.what = step;
    if (step.kind == NormalizerKind::kReplace) {
      HX_ASSIGN_OR_RETURN(compiled.matcher, TextMatcher::Create(step.pattern));
    }
  }
  return normalizer;
}

Result<std::string> Normalizer::Apply(std::string_view text,
                                      RegexScratch& scratch) const {
  const Limits limits{scratch, MaxRewrittenBytes(text.size())};
  std::string current(text);
  for (const Step& step : steps_) {
    HX_ASSIGN_OR_RETURN(current, ApplyStep(step, current, limits));
    if (current.size() > limits.max_bytes)
      return TextGrewTooLong(limits.max_bytes);
  }
  return current;
}

Result<std::string> Normalizer::ApplyStep(const Step& step,
                                          std::string_view text,
                                          const Limits& limits) {
  switch (step.what.kind) {
    case NormalizerKind::kNfc:
      return NormalizeUnicode(text, NormalizationForm::kNfc);
    case NormalizerKind::kNfd:
      return NormalizeUnicode(text, NormalizationForm::kNfd);
    case NormalizerKind::kNfkc:
      return NormalizeUnicode(text, NormalizationForm::kNfkc);
    case NormalizerKind::kNfkd:
      return NormalizeUnicode(text, NormalizationForm::kNfkd);
    case NormalizerKind::kLowercase:
      return ToLower(text);
    case NormalizerKind::kStrip:
      return Strip(text, step.what);
    case NormalizerKind::kStripAccents:
      return StripAccents(text);
    case NormalizerKind::kReplace:
      return ReplaceMatches(*step.matcher, text,
                            {step.what.content, limits.max_bytes},
                            limits.regex);
    case NormalizerKind::kPrepend:
      return text.empty() ? std::string()
                          : step.what.content + std::string(text);
    case NormalizerKind::kNmt:
      return CleanNmt(text);
    case NormalizerKind::kByteMap:
      return ByteMap(text);
  }
  return Error{ErrorCode::kBadInput, "unknown normalizer"};
}

}  // namespace hexllm

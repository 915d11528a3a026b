#include "text/piece_decoder.h"

#include <fmt/format.h>

#include "text/byte_level.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

std::string_view NameOf(DecoderKind kind) {
  switch (kind) {
    case DecoderKind::kByteMap:
      return "ByteLevel";
    case DecoderKind::kReplace:
      return "Replace";
    case DecoderKind::kByteFallback:
      return "ByteFallback";
    case DecoderKind::kFuse:
      return "Fuse";
    case DecoderKind::kStrip:
      return "Strip";
    case DecoderKind::kMetaspace:
      return "Metaspace";
    case DecoderKind::kBytePieces:
      return "BytePieces";
  }
  return "?";
}

// Takes up to left / right times `c` off the ends.
void StripEnds(std::string& text, const DecoderStep& step) {
  std::string_view rest = text;
  for (int32_t i = 0; i < step.left && rest.starts_with(step.content); ++i)
    rest.remove_prefix(step.content.size());
  for (int32_t i = 0; i < step.right && rest.ends_with(step.content); ++i)
    rest.remove_suffix(step.content.size());
  text = std::string(rest);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The byte that "<0xAB>" spells.
std::optional<char> SpelledByte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>')
    return std::nullopt;
  const int high = HexDigit(text[3]);
  const int low = HexDigit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

}  // namespace

// Sorts the steps into those for single tokens, the join, and stripping; then
// works out the shares.
class PieceDecoder::Builder {
 public:
  explicit Builder(PieceJoin join) { out_.join_ = join; }

  Status AddStep(const DecoderStep& step) {
    if (joined_) return AddAfterJoin(step);
    switch (step.kind) {
      case DecoderKind::kByteMap:
        out_.join_ = PieceJoin::kBytes;
        joined_ = true;
        return OkStatus();
      case DecoderKind::kFuse:
        joined_ = true;
        return OkStatus();
      case DecoderKind::kByteFallback:
      case DecoderKind::kBytePieces:
        out_.join_ = PieceJoin::kByteFallback;
        out_.keeps_characters_ = step.kind == DecoderKind::kBytePieces;
        return OkStatus();
      case DecoderKind::kReplace:
      case DecoderKind::kStrip:
      case DecoderKind::kMetaspace:
        return AddTokenStep(step);
    }
    return Unsupported(step);
  }

  Result<PieceDecoder> Build(const StringTable& spellings) && {
    out_.shares_.Reserve(spellings.size(), spellings.total_bytes());
    if (out_.join_ == PieceJoin::kByteFallback)
      out_.is_byte_.resize(spellings.size());
    RegexScratch scratch;
    for (size_t id = 0; id < spellings.size(); ++id) {
      HX_ASSIGN_OR_RETURN(std::string share,
                          ShareOf(spellings[id], /*first=*/false, scratch));
      if (out_.join_ == PieceJoin::kByteFallback) {
        const auto byte = SpelledByte(share);
        out_.is_byte_[id] = byte.has_value();
        if (byte) share.assign(1, *byte);
      }
      if (out_.shares_.total_bytes() + share.size() > 2 * kMaxVocabBytes) {
        return Error{
            ErrorCode::kBadInput,
            fmt::format("the decoder makes the vocabulary longer than {} bytes",
                        2 * kMaxVocabBytes)};
      }
      out_.shares_.Add(share);
      if (!first_differs_) continue;
      HX_ASSIGN_OR_RETURN(const std::string first,
                          ShareOf(spellings[id], /*first=*/true, scratch));
      out_.first_shares_.Add(first);
    }
    return std::move(out_);
  }

 private:
  struct TokenStep {
    DecoderStep what;
    std::optional<TextMatcher> matcher;  // for kReplace and kMetaspace
  };

  static Error Unsupported(const DecoderStep& step) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("decoder {} in this place of the sequence is not supported",
                    NameOf(step.kind))};
  }

  Status AddAfterJoin(const DecoderStep& step) {
    if (step.kind == DecoderKind::kFuse) return OkStatus();
    const bool strips_start = step.kind == DecoderKind::kStrip &&
                              step.right == 0 && out_.strip_char_.empty();
    if (!strips_start) return Unsupported(step);
    out_.strip_char_ = step.content;
    out_.strip_count_ = step.left;
    return OkStatus();
  }

  Status AddTokenStep(const DecoderStep& step) {
    if (out_.join_ != PieceJoin::kText) return Unsupported(step);
    TokenStep& added = steps_.emplace_back();
    added.what = step;
    if (step.kind == DecoderKind::kReplace) {
      HX_ASSIGN_OR_RETURN(added.matcher, TextMatcher::Create(step.pattern));
    } else if (step.kind == DecoderKind::kMetaspace) {
      HX_ASSIGN_OR_RETURN(
          added.matcher,
          TextMatcher::Create({PatternKind::kString, step.content}));
      added.what.content = " ";
      first_differs_ |= step.drop_first;
    }
    return OkStatus();
  }

  Result<std::string> ShareOf(std::string_view spelling, bool first,
                              RegexScratch& scratch) const {
    if (out_.join_ == PieceJoin::kBytes && steps_.empty()) {
      std::string bytes;
      if (!AppendBytesOfByteLevel(spelling, bytes)) bytes = spelling;
      return bytes;
    }
    std::string text(spelling);
    for (const TokenStep& step : steps_) {
      if (step.what.kind == DecoderKind::kStrip) {
        StripEnds(text, step.what);
        continue;
      }
      const bool drop = first && step.what.drop_first;
      const std::string_view content = step.what.content;
      const Replacement with{drop ? std::string_view() : content,
                             kMaxVocabBytes};
      HX_ASSIGN_OR_RETURN(text,
                          ReplaceMatches(*step.matcher, text, with, scratch));
    }
    if (out_.join_ != PieceJoin::kBytes) return text;
    std::string bytes;
    if (!AppendBytesOfByteLevel(text, bytes)) bytes = text;
    return bytes;
  }

  PieceDecoder out_;
  std::vector<TokenStep> steps_;
  bool joined_ = false;
  bool first_differs_ = false;
};

Result<PieceDecoder> PieceDecoder::Create(std::span<const DecoderStep> steps,
                                          const StringTable& spellings) {
  Builder builder(steps.empty() ? PieceJoin::kTextSpaced : PieceJoin::kText);
  for (const DecoderStep& step : steps)
    HX_RETURN_IF_ERROR(builder.AddStep(step));
  return std::move(builder).Build(spellings);
}

void PieceDecoder::AppendByteRun(std::string_view run, std::string& out) const {
  const bool keeps = keeps_characters_ || IsValidUtf8(run);
  for (size_t at = 0; at < run.size();) {
    const Utf8Char c = DecodeUtf8(run, at);
    const bool valid = keeps && c.state == Utf8State::kValid;
    const size_t bytes = valid ? c.bytes : 1;
    out.append(valid ? run.substr(at, bytes) : kReplacementUtf8);
    at += bytes;
  }
}

std::string_view PieceDecoder::FirstShare(size_t id) const {
  return first_shares_.empty() ? Share(id) : first_shares_[id];
}

}  // namespace hexllm

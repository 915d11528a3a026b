#include <algorithm>

#include "text/tokenizer_data.h"

namespace hexllm {
namespace {

// True when the first line is a word, a blank and a number.
bool LooksLikeTiktoken(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const size_t space = line.find(' ');
  const auto printable = [](char c) { return c > ' ' && c < 0x7F; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return space != std::string_view::npos && space + 1 < line.size() &&
         std::all_of(line.begin(), line.begin() + static_cast<ptrdiff_t>(space),
                     printable) &&
         std::all_of(line.begin() + static_cast<ptrdiff_t>(space) + 1,
                     line.end(), digit);
}

// True when the first field of the message is a piece (field 1) whose first
// field is its text (field 1).
bool LooksLikeSentencePiece(std::string_view text) {
  constexpr char kTag = '\x0A';
  return text.size() > 2 && text[0] == kTag && text[1] != '\0' &&
         text[2] == kTag;
}

}  // namespace

Result<TokenizerData> ParseTokenizerFile(ByteSpan file) {
  const std::string_view text = AsText(file);
  const size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first != std::string_view::npos && text[first] == '{')
    return ParseTokenizerJson(text);
  if (LooksLikeSentencePiece(text)) return ParseSentencePiece(file);
  if (LooksLikeTiktoken(text)) return ParseTiktoken(text);
  return ParseLlama2c(file);
}

}  // namespace hexllm

#include "base/quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace hexllm {
namespace {

bool IsContinuation(char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; }

// Bytes of the well-formed, printable UTF-8 sequence at the start of `text`
// (not empty); 0 when there is none.
size_t PrintableSequence(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  if (!std::all_of(text.begin() + 1,
                   text.begin() + static_cast<ptrdiff_t>(length),
                   IsContinuation)) {
    return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF, and the C1 controls.
  const auto second = static_cast<uint8_t>(text[1]);
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second > 0x9f) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second > 0x8f) return 0;
  if (first == 0xc2 && second < 0xa0) return 0;
  return length;
}

}  // namespace

std::string Printable(std::string_view text, size_t max_bytes) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (i >= max_bytes) return out + "...";
    const size_t length = PrintableSequence(text.substr(i));
    if (length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[i]));
    } else if (text[i] == '\\') {
      out += "\\\\";
    } else {
      out += text.substr(i, length);
    }
    i += std::max<size_t>(length, 1);
  }
  return out;
}

std::string Quoted(std::string_view text) {
  return fmt::format("'{}'", Printable(text));
}

}  // namespace hexllm

// UTF-8 decoding, checking and repair, and the bytes of a code point. Used by
// everything in text/. Not for Unicode properties or normalization: see
// text/unicode.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hexllm {

inline constexpr uint32_t kReplacementChar = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

enum class Utf8State : uint8_t {
  kValid,
  kInvalid,     // no character can begin with these bytes
  kIncomplete,  // the text ends inside a character that is right so far
};

// One character, or one maximal invalid part (Unicode 15, section 3.9, "U+FFFD
// substitution of maximal subparts").
struct Utf8Char {
  uint32_t code_point;  // kReplacementChar unless valid
  uint32_t bytes;       // >= 1
  Utf8State state;
};

// Decodes the character that begins at byte `at` (< text.size()).
Utf8Char DecodeUtf8(std::string_view text, size_t at);

// True when all of `text` is valid UTF-8 (no surrogates, nothing overlong,
// nothing above U+10FFFF).
bool IsValidUtf8(std::string_view text);

// kBadInput naming the first byte of `text` that is not valid UTF-8.
Status CheckUtf8(std::string_view text);

// Appends the UTF-8 bytes of a code point (a scalar value).
void AppendUtf8(uint32_t code_point, std::string& out);

// Appends `text` with U+FFFD for each maximal invalid part, as Python's
// bytes.decode("utf-8", "replace") does.
void AppendValidUtf8(std::string_view text, std::string& out);

// Bytes at the end of `text` that begin a character but do not finish it: 0
// to 3.
size_t IncompleteUtf8Suffix(std::string_view text);

// Calls visit(code_point, begin_byte, end_byte) for each character of valid
// UTF-8.
template <typename Visit>
void ForEachChar(std::string_view text, Visit&& visit) {
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      visit(static_cast<uint32_t>(lead), at, at + 1);
      ++at;
      continue;
    }
    const Utf8Char c = DecodeUtf8(text, at);
    visit(c.code_point, at, at + c.bytes);
    at += c.bytes;
  }
}

}  // namespace hexllm

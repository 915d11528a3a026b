#include "text/jinja/string_literal.h"

#include <fmt/format.h>

#include "text/jinja/text.h"
#include "text/utf8.h"

namespace hexllm::jinja {
namespace {

// The character of a one-letter escape, or 0.
char SimpleEscape(char c) {
  switch (c) {
    case '\\':
    case '\'':
    case '"':
      return c;
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return 0;
  }
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Reads exactly `digits` hex digits at `pos`.
Result<uint32_t> ReadHex(std::string_view raw, size_t& pos, int digits) {
  uint32_t value = 0;
  for (int i = 0; i < digits; ++i, ++pos) {
    const int digit = pos < raw.size() ? HexDigit(raw[pos]) : -1;
    if (digit < 0)
      return Error{
          ErrorCode::kBadInput,
          fmt::format("an escape in a string needs {} hex digits", digits)};
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  if (value > 0x10FFFF)
    return Error{ErrorCode::kBadInput,
                 "an escape in a string lies beyond U+10FFFF"};
  if (value >= 0xD800 && value <= 0xDFFF) {
    return Error{ErrorCode::kUnsupported,
                 "an escape of a surrogate in a string"};
  }
  return value;
}

uint32_t ReadOctal(std::string_view raw, size_t& pos) {
  uint32_t value = 0;
  for (int i = 0;
       i < 3 && pos < raw.size() && raw[pos] >= '0' && raw[pos] <= '7';
       ++i, ++pos) {
    value = value * 8 + static_cast<uint32_t>(raw[pos] - '0');
  }
  return value;
}

// A backslash before a non-ASCII character escapes the backslash of that
// character's own escape.
void AppendEscapedNonAscii(std::string& out, uint32_t value) {
  out += value <= 0xFF     ? fmt::format("\\x{:02x}", value)
         : value <= 0xFFFF ? fmt::format("\\u{:04x}", value)
                           : fmt::format("\\U{:08x}", value);
}

// Handles the escape whose backslash stands just before `pos`.
Status AppendEscape(std::string& out, std::string_view raw, size_t& pos) {
  const char c = raw[pos];
  if (static_cast<unsigned char>(c) >= 0x80) {
    AppendEscapedNonAscii(out, NextCodePoint(raw, pos));
    return OkStatus();
  }
  if (c >= '0' && c <= '7') {
    AppendUtf8(ReadOctal(raw, pos), out);
    return OkStatus();
  }
  ++pos;
  if (c == '\n') return OkStatus();  // a line break after a backslash vanishes
  if (c == 'N')
    return Error{ErrorCode::kUnsupported, "a \\N{...} escape in a string"};
  if (c == 'x' || c == 'u' || c == 'U') {
    HX_ASSIGN_OR_RETURN(const uint32_t value, ReadHex(raw, pos,
                                                      c == 'x'   ? 2
                                                      : c == 'u' ? 4
                                                                 : 8));
    AppendUtf8(value, out);
    return OkStatus();
  }
  const char simple = SimpleEscape(c);
  if (simple == 0) out += '\\';  // unknown escapes stay as they are
  out += simple == 0 ? c : simple;
  return OkStatus();
}

}  // namespace

Result<std::string> UnescapeStringLiteral(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (size_t pos = 0; pos < raw.size();) {
    if (raw[pos] != '\\') {
      out += raw[pos++];
      continue;
    }
    if (++pos == raw.size())
      return Error{ErrorCode::kBadInput, "a string ends in a backslash"};
    HX_RETURN_IF_ERROR(AppendEscape(out, raw, pos));
  }
  return out;
}

}  // namespace hexllm::jinja

#include "text/utf8.h"

#include <fmt/format.h>

#include <cstring>

namespace hexllm {
namespace {

// What a lead byte asks for: how many bytes in all, and the allowed range of
// the second (Unicode table 3-7).
struct Lead {
  uint32_t bytes;  // 0 = no character begins so
  unsigned char low;
  unsigned char high;
};

Lead LeadOf(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Bytes from `at` that are ASCII, eight at a time.
size_t AsciiRun(std::string_view text, size_t at) {
  const size_t start = at;
  while (at + 8 <= text.size()) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080u) != 0) break;
    at += 8;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at - start;
}

}  // namespace

Utf8Char DecodeUtf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const Lead lead = LeadOf(byte(at));
  if (lead.bytes == 0) return {kReplacementChar, 1, Utf8State::kInvalid};
  if (lead.bytes == 1) return {byte(at), 1, Utf8State::kValid};
  uint32_t code_point = byte(at) & (0x7Fu >> lead.bytes);
  for (uint32_t i = 1; i < lead.bytes; ++i) {
    if (at + i >= text.size())
      return {kReplacementChar, i, Utf8State::kIncomplete};
    const unsigned char next = byte(at + i);
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xBF;
    if (next < low || next > high)
      return {kReplacementChar, i, Utf8State::kInvalid};
    code_point = (code_point << 6) | (next & 0x3Fu);
  }
  return {code_point, lead.bytes, Utf8State::kValid};
}

namespace {

// How much of `text` is valid from its beginning.
size_t ValidBytes(std::string_view text) {
  size_t at = AsciiRun(text, 0);
  while (at < text.size()) {
    const Utf8Char c = DecodeUtf8(text, at);
    if (c.state != Utf8State::kValid) break;
    at += c.bytes;
    if (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80)
      at += AsciiRun(text, at);
  }
  return at;
}

}  // namespace

bool IsValidUtf8(std::string_view text) {
  return ValidBytes(text) == text.size();
}

Status CheckUtf8(std::string_view text) {
  const size_t at = ValidBytes(text);
  if (at == text.size()) return OkStatus();
  return Error{ErrorCode::kBadInput,
               fmt::format("expected text in UTF-8, found the byte 0x{:02x} at "
                           "offset {}; convert it",
                           static_cast<unsigned char>(text[at]), at)};
}

void AppendUtf8(uint32_t code_point, std::string& out) {
  const auto push = [&](uint32_t byte) {
    out.push_back(static_cast<char>(byte));
  };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | (code_point >> 6));
    push(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    push(0xE0 | (code_point >> 12));
    push(0x80 | ((code_point >> 6) & 0x3F));
    push(0x80 | (code_point & 0x3F));
  } else {
    push(0xF0 | (code_point >> 18));
    push(0x80 | ((code_point >> 12) & 0x3F));
    push(0x80 | ((code_point >> 6) & 0x3F));
    push(0x80 | (code_point & 0x3F));
  }
}

void AppendValidUtf8(std::string_view text, std::string& out) {
  size_t copied = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = DecodeUtf8(text, at);
    if (c.state != Utf8State::kValid) {
      out.append(text.substr(copied, at - copied));
      out.append(kReplacementUtf8);
      copied = at + c.bytes;
    }
    at += c.bytes;
  }
  out.append(text.substr(copied));
}

size_t IncompleteUtf8Suffix(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const size_t at = text.size() - back;
    const auto byte = static_cast<unsigned char>(text[at]);
    if ((byte & 0xC0) == 0x80)
      continue;  // a continuation byte: look further back
    const Utf8Char c = DecodeUtf8(text, at);
    return c.state == Utf8State::kIncomplete && c.bytes == back ? back : 0;
  }
  return 0;
}

}  // namespace hexllm

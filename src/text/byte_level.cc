#include "text/byte_level.h"

#include <array>

#include "text/utf8.h"

namespace hexllm {
namespace {

constexpr bool StandsForItself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

// The 68 bytes that do not stand for themselves have the characters U+0100 to
// U+0143.
constexpr uint32_t kFirstSubstitute = 0x100;
constexpr uint32_t kAlphabetEnd = 0x144;

struct Alphabet {
  std::array<uint16_t, 256> char_of_byte{};
  std::array<int16_t, kAlphabetEnd> byte_of_char{};  // -1 = not in the alphabet
};

constexpr Alphabet MakeAlphabet() {
  Alphabet a;
  for (auto& byte : a.byte_of_char) byte = -1;
  uint32_t next = kFirstSubstitute;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t c = StandsForItself(byte) ? byte : next++;
    a.char_of_byte[byte] = static_cast<uint16_t>(c);
    a.byte_of_char[c] = static_cast<int16_t>(byte);
  }
  return a;
}

constexpr Alphabet kAlphabet = MakeAlphabet();
static_assert(kAlphabet.char_of_byte[' '] == 0x120);
static_assert(kAlphabet.char_of_byte[0xAD] == kAlphabetEnd - 1);

}  // namespace

uint32_t ByteLevelChar(uint8_t byte) { return kAlphabet.char_of_byte[byte]; }

std::optional<uint8_t> ByteOfByteLevelChar(uint32_t code_point) {
  if (code_point >= kAlphabetEnd || kAlphabet.byte_of_char[code_point] < 0)
    return std::nullopt;
  return static_cast<uint8_t>(kAlphabet.byte_of_char[code_point]);
}

void AppendByteLevel(std::string_view bytes, std::string& out) {
  for (const char byte : bytes)
    AppendUtf8(ByteLevelChar(static_cast<uint8_t>(byte)), out);
}

// The alphabet ends below U+0800, so its characters have one or two bytes of
// UTF-8. Runs for each piece of a vocabulary at process start.
bool AppendBytesOfByteLevel(std::string_view spelling, std::string& out) {
  const size_t size = out.size();
  for (size_t at = 0; at < spelling.size(); ++at) {
    uint32_t c = static_cast<uint8_t>(spelling[at]);
    if (c >= 0x80) {
      const Utf8Char decoded = DecodeUtf8(spelling, at);
      c = decoded.bytes == 2 && decoded.state == Utf8State::kValid
              ? decoded.code_point
              : kAlphabetEnd;
      ++at;
    }
    const auto byte = ByteOfByteLevelChar(c);
    if (!byte) {
      out.resize(size);
      return false;
    }
    out.push_back(static_cast<char>(*byte));
  }
  return true;
}

}  // namespace hexllm

// The byte-level alphabet of GPT-2: a printable character for each of the 256
// bytes, so that a vocabulary of bytes can be written as text. "!".."~",
// "¡".."¬" and "®".."ÿ" stand for their own code; the other 68 bytes are U+0100
// onwards in order ("Ġ" is the space, "Ċ" the line feed). Used by the
// byte-level steps of a tokenizer. Source: bytes_to_unicode() in openai/gpt-2,
// encoder.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hexllm {

// The character that stands for `byte`.
uint32_t ByteLevelChar(uint8_t byte);

// The byte that `code_point` stands for, or nothing when it is not in the
// alphabet.
std::optional<uint8_t> ByteOfByteLevelChar(uint32_t code_point);

// Appends the alphabet's spelling of `bytes`.
void AppendByteLevel(std::string_view bytes, std::string& out);

// Appends the bytes that `spelling` (UTF-8) stands for and returns true;
// appends nothing and returns false when one of its characters is not in the
// alphabet.
bool AppendBytesOfByteLevel(std::string_view spelling, std::string& out);

}  // namespace hexllm

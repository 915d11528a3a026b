// Unicode properties, lower case and normalization forms, from utf8proc
// (Unicode 15). Used by the normalizers and pre-tokenizers. Not for regular
// expressions: PCRE2 has its own tables (text/regex.h). Nor for Python's title
// case, which templates need (text/jinja/text.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hexllm {

// The property White_Space.
bool IsWhiteSpace(uint32_t code_point);
// General category N (Nd, Nl, No).
bool IsNumeric(uint32_t code_point);
// General category P, or one of the ASCII symbols $ + < = > ^ ` | ~.
bool IsPunctuation(uint32_t code_point);
// General category M (Mn, Mc, Me).
bool IsMark(uint32_t code_point);
// A character of a word: Alphabetic (as the categories L, M, Nl), Nd, Pc or a
// zero-width joiner.
bool IsWordChar(uint32_t code_point);

enum class NormalizationForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// The normalization form of valid UTF-8. Time is O(n log n) whatever the text.
std::string NormalizeUnicode(std::string_view text, NormalizationForm form);

// Lower case of valid UTF-8, character by character: the full mapping without
// context.
std::string ToLower(std::string_view text);

}  // namespace hexllm

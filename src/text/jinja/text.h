// Text as Python sees it: code points of a UTF-8 string, its notion of white
// space, line breaks, letter case and printable characters (Unicode 15). Used
// by the template interpreter. All strings given here are valid UTF-8:
// templates and messages are checked at the border.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hexllm::jinja {

// Decodes the code point at `pos` and moves `pos` behind it. Needs pos <
// text.size().
uint32_t NextCodePoint(std::string_view text, size_t& pos);

// Number of code points.
size_t CodePointCount(std::string_view text);

// Byte offset of the code point number `index`, or text.size() beyond the end.
size_t CodePointOffset(std::string_view text, size_t index);

// Byte offset of every code point, and text.size() at the end.
std::vector<size_t> CodePointOffsets(std::string_view text);

// str.isspace for one character; also what \s matches.
bool IsSpace(uint32_t c);

// `text` without white space (or, with `chars`, without those characters) at
// the ends that are asked for.
enum class StripEnds { kLeft, kRight, kBoth };
std::string_view Strip(std::string_view text, StripEnds ends,
                       std::optional<std::string_view> chars = std::nullopt);

// Bytes of the line break that starts at `pos` (0 when there is none): "\n",
// "\r\n", "\r" and the other separators of str.splitlines.
size_t LineBreakLength(std::string_view text, size_t pos);

// str.upper, .lower, .title, .capitalize and .swapcase with the full mappings
// (one character may become several).
std::string UpperCase(std::string_view text);
std::string LowerCase(std::string_view text);
std::string TitleCase(std::string_view text);
std::string Capitalize(std::string_view text);
std::string SwapCase(std::string_view text);

// str.isupper and str.islower: there is a letter with case, and none of the
// other case.
bool IsAllUpper(std::string_view text);
bool IsAllLower(std::string_view text);

// str.isprintable for one character: repr() escapes the others.
bool IsPrintable(uint32_t c);

// str.isalpha, .isdecimal, .isdigit, .isnumeric and .isalnum for one character.
bool IsAlpha(uint32_t c);
bool IsDecimal(uint32_t c);
bool IsDigit(uint32_t c);
bool IsNumericChar(uint32_t c);
bool IsAlnum(uint32_t c);

}  // namespace hexllm::jinja

// Text from files in one-line messages and listings. Used wherever a name or
// value that we did not make is shown. Not an escape for JSON or shells.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hexllm {

inline constexpr size_t kMaxShownBytes = 160;

// `text` in printable form: control characters, and bytes that are not UTF-8,
// become \xNN; a backslash is doubled; what goes beyond `max_bytes` of input
// becomes "...". The result has no line break.
std::string Printable(std::string_view text, size_t max_bytes = kMaxShownBytes);

// The same between single quotes.
std::string Quoted(std::string_view text);

}  // namespace hexllm

// Escapes of string literals in templates. Used by the lexer.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace hexllm::jinja {

// The text of a string literal, given without its quotes: resolves Python's
// escapes as jinja2 does (the text is encoded as ASCII with backslash escapes,
// then decoded). kBadInput for a malformed escape, kUnsupported for \N{...} and
// for escapes of surrogates, which no UTF-8 text can hold.
Result<std::string> UnescapeStringLiteral(std::string_view raw);

}  // namespace hexllm::jinja

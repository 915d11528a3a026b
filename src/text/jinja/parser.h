// Parses the text of a template into its syntax tree (jinja/ast.h). Used by
// ChatTemplate. Source: jinja2 3.1 parser with the extension loopcontrols and
// transformers' tag `generation`.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/jinja/ast.h"

namespace hexllm::jinja {

// How deep statements and expressions may be nested.
inline constexpr int kMaxSyntaxDepth = 150;

// How many arguments a call and parameters a macro may have.
inline constexpr size_t kMaxArguments = 255;

// Parses `source` (valid UTF-8). kBadInput "chat template line N: ..." for
// errors of syntax and for filters and tests that jinja2 does not have;
// kUnsupported for what jinja2 has and hexllm has not (inheritance, imports,
// rare filters).
Result<Block> ParseTemplate(std::string_view source);

}  // namespace hexllm::jinja

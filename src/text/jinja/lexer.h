// Splits a template into tokens as jinja2's lexer does with trim_blocks and
// lstrip_blocks, including white space control (-, +), raw blocks and comments.
// Used by the parser (jinja/parser.h). Source: jinja2 3.1 lexer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hexllm::jinja {

enum class TokenKind {
  kData,           // text outside of tags, white space control applied
  kVariableBegin,  // {{
  kVariableEnd,    // }}
  kBlockBegin,     // {%
  kBlockEnd,       // %}
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,  // text is the operator
  kEnd,       // end of the template
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string
      text;  // data, name, operator, or the string with its escapes resolved
  int64_t integer = 0;
  double number = 0;

  bool Is(TokenKind k, std::string_view t) const {
    return kind == k && text == t;
  }
};

// The tokens of `source` (valid UTF-8), the last one kEnd. One newline at the
// end of the template is dropped, as jinja2 does. kBadInput with the line for
// malformed text; kUnsupported for ints beyond 64 bits, non-ASCII names and
// \N{...} escapes.
Result<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace hexllm::jinja

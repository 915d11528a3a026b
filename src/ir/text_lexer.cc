#include "ir/text_lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"

namespace hexllm::ir {
namespace {

constexpr size_t kMaxShown = 40;

bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

void LineLexer::SkipBlanks() {
  const size_t blanks = rest_.find_first_not_of(" \t\r");
  rest_.remove_prefix(std::min(blanks, rest_.size()));
}

bool LineLexer::Sees(std::string_view token) {
  SkipBlanks();
  return rest_.starts_with(token);
}

bool LineLexer::Take(std::string_view token) {
  if (!Sees(token)) return false;
  rest_.remove_prefix(token.size());
  return true;
}

Status LineLexer::Expect(std::string_view token) {
  if (Take(token)) return OkStatus();
  return Unexpected(fmt::format("'{}'", token));
}

bool LineLexer::AtEnd() {
  SkipBlanks();
  return rest_.empty() || rest_.starts_with("//");
}

Status LineLexer::ExpectEnd() {
  if (AtEnd()) return OkStatus();
  return Unexpected("the end of the line");
}

Result<std::string_view> LineLexer::Word() {
  SkipBlanks();
  size_t length = 0;
  while (length < rest_.size() && IsWordChar(rest_[length])) ++length;
  if (length == 0) return Unexpected("a word");
  const std::string_view word = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return word;
}

Result<std::string> LineLexer::QuotedString() {
  HX_RETURN_IF_ERROR(Expect("\""));
  std::string text;
  while (!rest_.empty() && rest_[0] != '"') {
    char c = rest_[0];
    rest_.remove_prefix(1);
    if (c == '\\') {
      HX_ASSIGN_OR_RETURN(c, Escape());
    }
    text += c;
  }
  if (rest_.empty()) return Unexpected("'\"'");
  rest_.remove_prefix(1);
  return text;
}

Result<char> LineLexer::Escape() {
  for (const char c : {'\\', '"'}) {
    if (!rest_.starts_with(c)) continue;
    rest_.remove_prefix(1);
    return c;
  }
  uint8_t byte = 0;
  const char* digits = rest_.data() + 1;
  if (rest_.size() < 3 || rest_[0] != 'x' ||
      std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
    return Unexpected("\\\\, \\\" or \\xNN in the string");
  }
  rest_.remove_prefix(3);
  return static_cast<char>(byte);
}

Error LineLexer::Unexpected(std::string_view wanted) const {
  const std::string found = rest_.empty()
                                ? "the end of the line"
                                : "'" + Printable(rest_, kMaxShown) + "'";
  return Error{ErrorCode::kBadInput,
               fmt::format("expected {}, found {}", wanted, found)};
}

}  // namespace hexllm::ir

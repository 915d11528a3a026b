// A cursor over the tokens of a template with the few lookups that parsing
// needs. Shared by the parsers of statements and expressions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/lexer.h"

namespace hexllm::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens)
      : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[pos_]; }
  // The token after the current one (the end token at the end).
  const Token& next() const {
    return tokens_[pos_ + 1 < tokens_.size() ? pos_ + 1 : pos_];
  }
  int line() const { return current().line; }

  void Skip() {
    if (pos_ + 1 < tokens_.size()) ++pos_;
  }
  bool At(TokenKind kind) const { return current().kind == kind; }
  bool AtOperator(std::string_view op) const {
    return current().Is(TokenKind::kOperator, op);
  }
  bool AtName(std::string_view name) const {
    return current().Is(TokenKind::kName, name);
  }

  // Skip the given token when it is the current one, and say so.
  bool SkipOperator(std::string_view op);
  bool SkipName(std::string_view name);

  // Skip the given token; kBadInput when another one is there.
  Status ExpectOperator(std::string_view op);
  Status ExpectName(std::string_view name);
  Status Expect(TokenKind kind);
  // Takes a name of the template's choice.
  Result<std::string> TakeName();

  // "chat template line N: MESSAGE" for the current token.
  Error Fail(std::string_view message) const;
  Error Unsupported(std::string_view message) const;
  // The same: "expected WHAT, found TOKEN".
  Error Unexpected(std::string_view what) const;

 private:
  std::vector<Token> tokens_;
  size_t pos_ = 0;
};

}  // namespace hexllm::jinja

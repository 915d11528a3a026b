#include "text/jinja/token_stream.h"

#include <fmt/format.h>

namespace hexllm::jinja {
namespace {

std::string_view KindName(TokenKind kind) {
  switch (kind) {
    case TokenKind::kData:
      return "text";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kName:
      return "a name";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return "a number";
    case TokenKind::kOperator:
      return "an operator";
    case TokenKind::kEnd:
      return "the end of the template";
  }
  return "";
}

std::string Describe(const Token& token) {
  if (token.kind == TokenKind::kName || token.kind == TokenKind::kOperator)
    return fmt::format("'{}'", token.text);
  return std::string(KindName(token.kind));
}

}  // namespace

bool TokenStream::SkipOperator(std::string_view op) {
  if (!AtOperator(op)) return false;
  Skip();
  return true;
}

bool TokenStream::SkipName(std::string_view name) {
  if (!AtName(name)) return false;
  Skip();
  return true;
}

Status TokenStream::ExpectOperator(std::string_view op) {
  if (!SkipOperator(op)) return Unexpected(fmt::format("'{}'", op));
  return OkStatus();
}

Status TokenStream::ExpectName(std::string_view name) {
  if (!SkipName(name)) return Unexpected(fmt::format("'{}'", name));
  return OkStatus();
}

Status TokenStream::Expect(TokenKind kind) {
  if (!At(kind)) return Unexpected(KindName(kind));
  Skip();
  return OkStatus();
}

Result<std::string> TokenStream::TakeName() {
  if (!At(TokenKind::kName)) return Unexpected("a name");
  std::string name = current().text;
  Skip();
  return name;
}

Error TokenStream::Fail(std::string_view message) const {
  return Error{ErrorCode::kBadInput,
               fmt::format("chat template line {}: {}", line(), message)};
}

Error TokenStream::Unsupported(std::string_view message) const {
  return Error{ErrorCode::kUnsupported,
               fmt::format("chat template line {}: {}", line(), message)};
}

Error TokenStream::Unexpected(std::string_view what) const {
  return Fail(fmt::format("expected {}, found {}", what, Describe(current())));
}

}  // namespace hexllm::jinja

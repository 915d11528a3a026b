// Parses the expressions of a template. Used by the statement parser
// (jinja/parser.cc). Operators and literals: jinja/expr_parser.cc; what follows
// a value, calls, filters and tests: jinja/expr_postfix.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "text/jinja/ast.h"
#include "text/jinja/token_stream.h"

namespace hexllm::jinja {

// Whether "a if b else c" may stand at the top of an expression.
enum class Conditional { kAllowed, kExcluded };

class ExprParser {
 public:
  explicit ExprParser(TokenStream& stream) : stream_(stream) {}

  Result<ExprPtr> ParseExpression(
      Conditional conditional = Conditional::kAllowed);
  // One expression, or several with commas: a tuple. An expression must be
  // there.
  Result<ExprPtr> ParseTuple(Conditional conditional = Conditional::kAllowed);
  // "| name(...) | ..." applied to `input` (null in filter blocks). With
  // kAtName the first name stands without its "|".
  enum class FilterStart { kAtPipe, kAtName };
  Result<ExprPtr> ParseFilters(ExprPtr input, FilterStart start);

  // Names of filters and tests are checked while parsing, except inside of
  // conditional code, where jinja2 checks them when the code runs.
  void EnterConditional() { ++conditional_depth_; }
  void LeaveConditional() { --conditional_depth_; }

  // Special variables of macros mentioned since the flags were last reset;
  // nested macros count for the outer ones.
  struct Mentions {
    bool caller = false;
    bool kwargs = false;
    bool varargs = false;
  };
  Mentions& mentions() { return mentions_; }

  // Brackets a level of nesting, of statements too: kBadInput beyond
  // kMaxSyntaxDepth.
  Status Enter();
  void Leave() { --depth_; }

 private:
  Result<ExprPtr> ParseConditional();
  Result<ExprPtr> ParseOr();
  Result<ExprPtr> ParseAnd();
  Result<ExprPtr> ParseNot();
  Result<ExprPtr> ParseCompare();
  Result<ExprPtr> ParseSum();
  Result<ExprPtr> ParseConcat();
  Result<ExprPtr> ParseProduct();
  Result<ExprPtr> ParsePower();
  enum class Filters { kAllowed, kExcluded };
  Result<ExprPtr> ParseUnary(Filters filters);
  Result<ExprPtr> ParseUnaryHead(Filters filters);
  Result<ExprPtr> ParsePrimary();
  Result<ExprPtr> ParseName();
  Result<ExprPtr> ParseStrings();
  Result<ExprPtr> ParseParentheses();
  Result<ExprPtr> ParseList();
  Result<ExprPtr> ParseDict();
  Result<ExprPtr> ParsePostfix(ExprPtr expr);
  Result<ExprPtr> ParsePostfixFilters(ExprPtr expr);
  Result<ExprPtr> ParseDot(ExprPtr object);
  Result<ExprPtr> ParseSubscript(ExprPtr object);
  Result<ExprPtr> ParseCall(ExprPtr callee);
  Result<ExprPtr> ParseOneFilter(ExprPtr input);
  Result<ExprPtr> ParseTest(ExprPtr input);
  Result<CallSyntax> ParseCallArgs();
  Status ParseCallArg(CallSyntax& args);
  Result<std::string> ParseDottedName();
  bool AtTupleEnd() const;

  template <typename Node>
  Result<ExprPtr> Make(int line, Node node) {
    auto expr = std::make_unique<Expr>();
    expr->line = line;
    expr->node = std::move(node);
    return WithHeight(std::move(expr));
  }
  // Computes the height of a new node; kBadInput when it is too high.
  Result<ExprPtr> WithHeight(ExprPtr expr) const;

  TokenStream& stream_;
  int depth_ = 0;
  int conditional_depth_ = 0;
  Mentions mentions_;
};

}  // namespace hexllm::jinja

// What follows a value: attributes, items, calls, filters and tests. (See
// jinja/expr_parser.h.)
#include <fmt/format.h>

#include "text/jinja/expr_parser.h"
#include "text/jinja/filters.h"
#include "text/jinja/parser.h"
#include "text/jinja/predicates.h"

namespace hexllm::jinja {
namespace {

// The tokens that may begin an argument of a test that has no parentheses ("x
// is divisibleby 3").
bool BeginsTestArgument(const TokenStream& stream) {
  switch (stream.current().kind) {
    case TokenKind::kName:
      return !stream.AtName("else") && !stream.AtName("or") &&
             !stream.AtName("and");
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return true;
    default:
      return stream.AtOperator("[") || stream.AtOperator("{");
  }
}

}  // namespace

Result<ExprPtr> ExprParser::ParsePostfix(ExprPtr expr) {
  while (true) {
    if (stream_.AtOperator(".")) {
      HX_ASSIGN_OR_RETURN(expr, ParseDot(std::move(expr)));
    } else if (stream_.AtOperator("[")) {
      HX_ASSIGN_OR_RETURN(expr, ParseSubscript(std::move(expr)));
    } else if (stream_.AtOperator("(")) {
      HX_ASSIGN_OR_RETURN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<ExprPtr> ExprParser::ParsePostfixFilters(ExprPtr expr) {
  while (true) {
    if (stream_.AtOperator("|")) {
      HX_ASSIGN_OR_RETURN(expr,
                          ParseFilters(std::move(expr), FilterStart::kAtPipe));
    } else if (stream_.AtName("is")) {
      HX_ASSIGN_OR_RETURN(expr, ParseTest(std::move(expr)));
    } else if (stream_.AtOperator("(")) {
      HX_ASSIGN_OR_RETURN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<ExprPtr> ExprParser::ParseDot(ExprPtr object) {
  const int line = stream_.line();
  HX_RETURN_IF_ERROR(stream_.ExpectOperator("."));
  if (stream_.At(TokenKind::kInteger)) {
    HX_ASSIGN_OR_RETURN(
        ExprPtr key,
        Make(line, ConstantExpr{Value::Int(stream_.current().integer)}));
    stream_.Skip();
    return Make(line, ItemExpr{std::move(object), std::move(key)});
  }
  HX_ASSIGN_OR_RETURN(std::string name, stream_.TakeName());
  return Make(line, AttributeExpr{std::move(object), std::move(name)});
}

Result<ExprPtr> ExprParser::ParseSubscript(ExprPtr object) {
  const int line = stream_.line();
  HX_RETURN_IF_ERROR(stream_.ExpectOperator("["));
  ExprPtr parts[3];
  int colons = 0;
  while (true) {
    if (!stream_.AtOperator(":") && !stream_.AtOperator("]")) {
      HX_ASSIGN_OR_RETURN(parts[colons], ParseExpression());
    }
    if (colons == 2 || !stream_.SkipOperator(":")) break;
    ++colons;
  }
  if (stream_.AtOperator(","))
    return stream_.Unsupported("several subscripts in one pair of brackets");
  HX_RETURN_IF_ERROR(stream_.ExpectOperator("]"));
  if (colons > 0) {
    return Make(line, SliceExpr{std::move(object), std::move(parts[0]),
                                std::move(parts[1]), std::move(parts[2])});
  }
  if (parts[0] == nullptr) return stream_.Fail("empty brackets after a value");
  return Make(line, ItemExpr{std::move(object), std::move(parts[0])});
}

Result<ExprPtr> ExprParser::ParseCall(ExprPtr callee) {
  const int line = stream_.line();
  HX_ASSIGN_OR_RETURN(CallSyntax args, ParseCallArgs());
  return Make(line, CallExpr{std::move(callee), std::move(args)});
}

Result<CallSyntax> ExprParser::ParseCallArgs() {
  HX_RETURN_IF_ERROR(stream_.ExpectOperator("("));
  CallSyntax args;
  while (!stream_.AtOperator(")")) {
    if (args.positional.size() + args.named.size() >= kMaxArguments) {
      return stream_.Unsupported(
          fmt::format("a call with more than {} arguments", kMaxArguments));
    }
    HX_RETURN_IF_ERROR(ParseCallArg(args));
    if (!stream_.SkipOperator(",")) break;
  }
  HX_RETURN_IF_ERROR(stream_.ExpectOperator(")"));
  return args;
}

Status ExprParser::ParseCallArg(CallSyntax& args) {
  constexpr std::string_view kOrder = "invalid order of arguments in a call";
  if (stream_.AtOperator("*")) {
    if (args.spread != nullptr || args.named_spread != nullptr)
      return stream_.Fail(kOrder);
    stream_.Skip();
    HX_ASSIGN_OR_RETURN(args.spread, ParseExpression());
    return OkStatus();
  }
  if (args.named_spread != nullptr) return stream_.Fail(kOrder);
  if (stream_.SkipOperator("**")) {
    HX_ASSIGN_OR_RETURN(args.named_spread, ParseExpression());
    return OkStatus();
  }
  if (stream_.At(TokenKind::kName) &&
      stream_.next().Is(TokenKind::kOperator, "=")) {
    HX_ASSIGN_OR_RETURN(std::string name, stream_.TakeName());
    stream_.Skip();
    HX_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    for (const NamedExpr& other : args.named) {
      if (other.name == name)
        return stream_.Fail(fmt::format("keyword argument repeated: {}", name));
    }
    args.named.push_back({std::move(name), std::move(value)});
    return OkStatus();
  }
  if (args.spread != nullptr || !args.named.empty())
    return stream_.Fail(kOrder);
  HX_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
  args.positional.push_back(std::move(value));
  return OkStatus();
}

Result<std::string> ExprParser::ParseDottedName() {
  HX_ASSIGN_OR_RETURN(std::string name, stream_.TakeName());
  while (stream_.SkipOperator(".")) {
    HX_ASSIGN_OR_RETURN(const std::string part, stream_.TakeName());
    name += "." + part;
  }
  return name;
}

Result<ExprPtr> ExprParser::ParseFilters(ExprPtr input, FilterStart start) {
  if (start == FilterStart::kAtName) {
    HX_ASSIGN_OR_RETURN(input, ParseOneFilter(std::move(input)));
  }
  while (stream_.SkipOperator("|")) {
    HX_ASSIGN_OR_RETURN(input, ParseOneFilter(std::move(input)));
  }
  return input;
}

Result<ExprPtr> ExprParser::ParseOneFilter(ExprPtr input) {
  const int line = stream_.line();
  FilterExpr filter;
  filter.input = std::move(input);
  HX_ASSIGN_OR_RETURN(filter.name, ParseDottedName());
  if (conditional_depth_ == 0 && FindFilter(filter.name) == nullptr) {
    if (IsUnsupportedFilter(filter.name))
      return stream_.Unsupported(fmt::format("the filter '{}'", filter.name));
    return stream_.Fail(fmt::format("no filter named '{}'", filter.name));
  }
  if (stream_.AtOperator("(")) {
    HX_ASSIGN_OR_RETURN(filter.args, ParseCallArgs());
  }
  return Make(line, std::move(filter));
}

Result<ExprPtr> ExprParser::ParseTest(ExprPtr input) {
  const int line = stream_.line();
  HX_RETURN_IF_ERROR(stream_.ExpectName("is"));
  const bool negated = stream_.SkipName("not");
  TestExpr test;
  test.input = std::move(input);
  HX_ASSIGN_OR_RETURN(test.name, ParseDottedName());
  if (conditional_depth_ == 0 && FindTest(test.name) == nullptr) {
    return stream_.Fail(fmt::format("no test named '{}'", test.name));
  }
  if (stream_.AtOperator("(")) {
    HX_ASSIGN_OR_RETURN(test.args, ParseCallArgs());
  } else if (BeginsTestArgument(stream_)) {
    if (stream_.AtName("is"))
      return stream_.Fail("tests cannot be chained with 'is'");
    HX_ASSIGN_OR_RETURN(ExprPtr argument, ParsePrimary());
    HX_ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
    test.args.positional.push_back(std::move(argument));
  }
  HX_ASSIGN_OR_RETURN(ExprPtr expr, Make(line, std::move(test)));
  if (!negated) return expr;
  return Make(line, UnaryExpr{UnaryOp::kNot, std::move(expr)});
}

}  // namespace hexllm::jinja

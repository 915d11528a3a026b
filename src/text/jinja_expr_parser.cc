#include "text/jinja_expr_parser.h"

#include <fmt/format.h>

#include <optional>

#include "text/jinja_expr_height.h"
#include "text/jinja_filters.h"
#include "text/jinja_parser.h"
#include "text/jinja_predicates.h"

namespace hexllm::jinja {
namespace {

std::optional<CompareOp> CompareOperator(const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "==") return CompareOp::kEqual;
  if (token.text == "!=") return CompareOp::kNotEqual;
  if (token.text == "<") return CompareOp::kLess;
  if (token.text == "<=") return CompareOp::kLessEqual;
  if (token.text == ">") return CompareOp::kGreater;
  if (token.text == ">=") return CompareOp::kGreaterEqual;
  return std::nullopt;
}

std::optional<BinaryOp> ProductOperator(const TokenStream& stream) {
  if (stream.AtOperator("*")) return BinaryOp::kMultiply;
  if (stream.AtOperator("/")) return BinaryOp::kDivide;
  if (stream.AtOperator("//")) return BinaryOp::kFloorDivide;
  if (stream.AtOperator("%")) return BinaryOp::kModulo;
  return std::nullopt;
}

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

Status ExprParser::Enter() {
  if (depth_ >= kMaxSyntaxDepth) {
    return stream_.Fail(fmt::format(
        "the template is nested deeper than {} levels", kMaxSyntaxDepth));
  }
  ++depth_;
  return OkStatus();
}

template <typename Node>
Result<ExprPtr> ExprParser::Make(int line, Node node) {
  const int height = HeightBelow(node) + 1;
  if (height > kMaxSyntaxDepth) {
    return stream_.Fail(fmt::format(
        "an expression is nested deeper than {} levels", kMaxSyntaxDepth));
  }
  auto expr = std::make_unique<Expr>();
  expr->line = line;
  expr->height = height;
  expr->node = std::move(node);
  return expr;
}

Result<ExprPtr> ExprParser::ParseExpression(Conditional conditional) {
  HX_RETURN_IF_ERROR(Enter());
  auto expr =
      conditional == Conditional::kAllowed ? ParseConditional() : ParseOr();
  Leave();
  return expr;
}

bool ExprParser::AtTupleEnd() const {
  return stream_.At(TokenKind::kVariableEnd) ||
         stream_.At(TokenKind::kBlockEnd) || stream_.AtOperator(")") ||
         stream_.AtName("recursive");
}

Result<ExprPtr> ExprParser::ParseTuple(Conditional conditional) {
  const int line = stream_.line();
  if (stream_.At(TokenKind::kVariableEnd) || stream_.At(TokenKind::kBlockEnd))
    return stream_.Unexpected("an expression");
  HX_ASSIGN_OR_RETURN(ExprPtr first, ParseExpression(conditional));
  if (!stream_.AtOperator(",")) return first;
  SequenceExpr tuple;
  tuple.tuple = true;
  tuple.items.push_back(std::move(first));
  while (stream_.SkipOperator(",")) {
    if (AtTupleEnd()) break;
    HX_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression(conditional));
    tuple.items.push_back(std::move(item));
  }
  return Make(line, std::move(tuple));
}

Result<ExprPtr> ExprParser::ParseConditional() {
  const int line = stream_.line();
  HX_ASSIGN_OR_RETURN(ExprPtr expr, ParseOr());
  while (stream_.SkipName("if")) {
    ConditionalExpr conditional;
    conditional.then = std::move(expr);
    HX_ASSIGN_OR_RETURN(conditional.condition, ParseOr());
    if (stream_.SkipName("else")) {
      HX_ASSIGN_OR_RETURN(conditional.otherwise, ParseExpression());
    }
    HX_ASSIGN_OR_RETURN(expr, Make(line, std::move(conditional)));
  }
  return expr;
}

Result<ExprPtr> ExprParser::ParseOr() {
  HX_ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (stream_.AtName("or")) {
    const int line = stream_.line();
    stream_.Skip();
    HX_ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    HX_ASSIGN_OR_RETURN(left,
                        Make(line, BinaryExpr{BinaryOp::kOr, std::move(left),
                                              std::move(right)}));
  }
  return left;
}

Result<ExprPtr> ExprParser::ParseAnd() {
  HX_ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (stream_.AtName("and")) {
    const int line = stream_.line();
    stream_.Skip();
    HX_ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    HX_ASSIGN_OR_RETURN(left,
                        Make(line, BinaryExpr{BinaryOp::kAnd, std::move(left),
                                              std::move(right)}));
  }
  return left;
}

Result<ExprPtr> ExprParser::ParseNot() {
  const int line = stream_.line();
  if (!stream_.SkipName("not")) return ParseCompare();
  HX_RETURN_IF_ERROR(Enter());
  auto operand = ParseNot();
  Leave();
  if (!operand.ok()) return operand;
  return Make(line, UnaryExpr{UnaryOp::kNot, std::move(operand).value()});
}

Result<ExprPtr> ExprParser::ParseCompare() {
  const int line = stream_.line();
  HX_ASSIGN_OR_RETURN(ExprPtr first, ParseSum());
  CompareExpr compare;
  while (true) {
    auto op = CompareOperator(stream_.current());
    if (stream_.AtName("in")) op = CompareOp::kIn;
    if (stream_.AtName("not") && stream_.next().Is(TokenKind::kName, "in")) {
      stream_.Skip();
      op = CompareOp::kNotIn;
    }
    if (!op) break;
    stream_.Skip();
    HX_ASSIGN_OR_RETURN(ExprPtr operand, ParseSum());
    compare.rest.emplace_back(*op, std::move(operand));
  }
  if (compare.rest.empty()) return first;
  compare.first = std::move(first);
  return Make(line, std::move(compare));
}

Result<ExprPtr> ExprParser::ParseSum() {
  HX_ASSIGN_OR_RETURN(ExprPtr left, ParseConcat());
  while (stream_.AtOperator("+") || stream_.AtOperator("-")) {
    const int line = stream_.line();
    const BinaryOp op =
        stream_.AtOperator("+") ? BinaryOp::kAdd : BinaryOp::kSubtract;
    stream_.Skip();
    HX_ASSIGN_OR_RETURN(ExprPtr right, ParseConcat());
    HX_ASSIGN_OR_RETURN(
        left, Make(line, BinaryExpr{op, std::move(left), std::move(right)}));
  }
  return left;
}

Result<ExprPtr> ExprParser::ParseConcat() {
  const int line = stream_.line();
  HX_ASSIGN_OR_RETURN(ExprPtr first, ParseProduct());
  if (!stream_.AtOperator("~")) return first;
  ConcatExpr concat;
  concat.parts.push_back(std::move(first));
  while (stream_.SkipOperator("~")) {
    HX_ASSIGN_OR_RETURN(ExprPtr part, ParseProduct());
    concat.parts.push_back(std::move(part));
  }
  return Make(line, std::move(concat));
}

Result<ExprPtr> ExprParser::ParseProduct() {
  HX_ASSIGN_OR_RETURN(ExprPtr left, ParsePower());
  while (const auto op = ProductOperator(stream_)) {
    const int line = stream_.line();
    stream_.Skip();
    HX_ASSIGN_OR_RETURN(ExprPtr right, ParsePower());
    HX_ASSIGN_OR_RETURN(
        left, Make(line, BinaryExpr{*op, std::move(left), std::move(right)}));
  }
  return left;
}

Result<ExprPtr> ExprParser::ParsePower() {
  HX_ASSIGN_OR_RETURN(ExprPtr left, ParseUnary(Filters::kAllowed));
  while (stream_.AtOperator("**")) {
    const int line = stream_.line();
    stream_.Skip();
    HX_ASSIGN_OR_RETURN(ExprPtr right, ParseUnary(Filters::kAllowed));
    HX_ASSIGN_OR_RETURN(left,
                        Make(line, BinaryExpr{BinaryOp::kPower, std::move(left),
                                              std::move(right)}));
  }
  return left;
}

Result<ExprPtr> ExprParser::ParseUnary(Filters filters) {
  HX_RETURN_IF_ERROR(Enter());
  auto expr = ParseUnaryHead(filters);
  Leave();
  return expr;
}

Result<ExprPtr> ExprParser::ParseUnaryHead(Filters filters) {
  const int line = stream_.line();
  ExprPtr expr;
  if (stream_.AtOperator("-") || stream_.AtOperator("+")) {
    const UnaryOp op =
        stream_.AtOperator("-") ? UnaryOp::kNegative : UnaryOp::kPositive;
    stream_.Skip();
    HX_ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(Filters::kExcluded));
    HX_ASSIGN_OR_RETURN(expr, Make(line, UnaryExpr{op, std::move(operand)}));
  } else {
    HX_ASSIGN_OR_RETURN(expr, ParsePrimary());
  }
  HX_ASSIGN_OR_RETURN(expr, ParsePostfix(std::move(expr)));
  if (filters == Filters::kExcluded) return expr;
  return ParsePostfixFilters(std::move(expr));
}

Result<ExprPtr> ExprParser::ParsePrimary() {
  const Token& token = stream_.current();
  const int line = token.line;
  switch (token.kind) {
    case TokenKind::kName:
      return ParseName();
    case TokenKind::kString:
      return ParseStrings();
    case TokenKind::kInteger: {
      const int64_t number = token.integer;
      stream_.Skip();
      return Make(line, ConstantExpr{Value::Int(number)});
    }
    case TokenKind::kFloat: {
      const double number = token.number;
      stream_.Skip();
      return Make(line, ConstantExpr{Value(number)});
    }
    default:
      break;
  }
  if (stream_.AtOperator("(")) return ParseParentheses();
  if (stream_.AtOperator("[")) return ParseList();
  if (stream_.AtOperator("{")) return ParseDict();
  return stream_.Unexpected("an expression");
}

Result<ExprPtr> ExprParser::ParseName() {
  const int line = stream_.line();
  HX_ASSIGN_OR_RETURN(std::string name, stream_.TakeName());
  if (name == "true" || name == "True")
    return Make(line, ConstantExpr{Value::Bool(true)});
  if (name == "false" || name == "False")
    return Make(line, ConstantExpr{Value::Bool(false)});
  if (name == "none" || name == "None")
    return Make(line, ConstantExpr{Value()});
  mentions_.caller |= name == "caller";
  mentions_.kwargs |= name == "kwargs";
  mentions_.varargs |= name == "varargs";
  return Make(line, NameExpr{std::move(name)});
}

Result<ExprPtr> ExprParser::ParseStrings() {
  const int line = stream_.line();
  std::string text;
  while (
      stream_.At(TokenKind::kString)) {  // neighbours are joined, as in Python
    text += stream_.current().text;
    stream_.Skip();
  }
  return Make(line, ConstantExpr{Value::Text(std::move(text))});
}

Result<ExprPtr> ExprParser::ParseParentheses() {
  const int line = stream_.line();
  HX_RETURN_IF_ERROR(stream_.ExpectOperator("("));
  if (stream_.SkipOperator(")")) return Make(line, SequenceExpr{{}, true});
  HX_ASSIGN_OR_RETURN(ExprPtr expr, ParseTuple());
  HX_RETURN_IF_ERROR(stream_.ExpectOperator(")"));
  return expr;
}

Result<ExprPtr> ExprParser::ParseList() {
  const int line = stream_.line();
  HX_RETURN_IF_ERROR(stream_.ExpectOperator("["));
  SequenceExpr list;
  while (!stream_.AtOperator("]")) {
    if (!list.items.empty()) HX_RETURN_IF_ERROR(stream_.ExpectOperator(","));
    if (stream_.AtOperator("]")) break;
    HX_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    list.items.push_back(std::move(item));
  }
  HX_RETURN_IF_ERROR(stream_.ExpectOperator("]"));
  return Make(line, std::move(list));
}

Result<ExprPtr> ExprParser::ParseDict() {
  const int line = stream_.line();
  HX_RETURN_IF_ERROR(stream_.ExpectOperator("{"));
  DictExpr dict;
  while (!stream_.AtOperator("}")) {
    if (!dict.items.empty()) HX_RETURN_IF_ERROR(stream_.ExpectOperator(","));
    if (stream_.AtOperator("}")) break;
    HX_ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
    HX_RETURN_IF_ERROR(stream_.ExpectOperator(":"));
    HX_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    dict.items.emplace_back(std::move(key), std::move(value));
  }
  HX_RETURN_IF_ERROR(stream_.ExpectOperator("}"));
  return Make(line, std::move(dict));
}

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

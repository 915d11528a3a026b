#include "text/jinja/expr_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "text/jinja/ast_walk.h"
#include "text/jinja/parser.h"

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

}  // namespace

Status ExprParser::Enter() {
  if (depth_ >= kMaxSyntaxDepth) {
    return stream_.Fail(fmt::format(
        "the template is nested deeper than {} levels", kMaxSyntaxDepth));
  }
  ++depth_;
  return OkStatus();
}

Result<ExprPtr> ExprParser::WithHeight(ExprPtr expr) const {
  ForEachOperand(*expr, [&expr](const Expr& operand) {
    expr->height = std::max(expr->height, operand.height + 1);
  });
  if (expr->height <= kMaxSyntaxDepth) return expr;
  return stream_.Fail(fmt::format(
      "an expression is nested deeper than {} levels", kMaxSyntaxDepth));
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
  HX_ASSIGN_OR_RETURN(const std::string name, stream_.TakeName());
  if (name == "true" || name == "True")
    return Make(line, ConstantExpr{Value::Bool(true)});
  if (name == "false" || name == "False")
    return Make(line, ConstantExpr{Value::Bool(false)});
  if (name == "none" || name == "None")
    return Make(line, ConstantExpr{Value()});
  mentions_.caller |= name == "caller";
  mentions_.kwargs |= name == "kwargs";
  mentions_.varargs |= name == "varargs";
  return Make(line, NameExpr{name});
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

}  // namespace hexllm::jinja

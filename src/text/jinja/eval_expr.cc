// Expressions. (See jinja/eval.h.)
#include <fmt/format.h>

#include "text/jinja/eval.h"
#include "text/jinja/filters.h"
#include "text/jinja/ops.h"
#include "text/jinja/predicates.h"
#include "text/jinja/print.h"

namespace hexllm::jinja {

Result<Value> Evaluator::Eval(const Expr& expr, Scope& scope) {
  HX_RETURN_IF_ERROR(context_.Enter());
  const DepthGuard guard(context_);
  HX_RETURN_IF_ERROR(context_.Spend(1));
  context_.set_line(expr.line);
  return std::visit([&](const auto& node) { return EvalNode(node, scope); },
                    expr.node);
}

Result<Value> Evaluator::EvalNode(const ConstantExpr& node, Scope&) {
  return node.value;
}

Result<Value> Evaluator::EvalNode(const NameExpr& node, Scope& scope) {
  if (const Value* value = scope.Find(node.name)) return *value;
  return Value::Missing(fmt::format("'{}' is undefined", node.name));
}

Result<Value> Evaluator::EvalNode(const AttributeExpr& node, Scope& scope) {
  HX_ASSIGN_OR_RETURN(const Value object, Eval(*node.object, scope));
  return GetAttribute(context_, object, node.name);
}

Result<Value> Evaluator::EvalNode(const ItemExpr& node, Scope& scope) {
  HX_ASSIGN_OR_RETURN(const Value object, Eval(*node.object, scope));
  HX_ASSIGN_OR_RETURN(const Value key, Eval(*node.key, scope));
  return GetItem(context_, object, key);
}

Result<Value> Evaluator::EvalNode(const SliceExpr& node, Scope& scope) {
  HX_ASSIGN_OR_RETURN(const Value object, Eval(*node.object, scope));
  SliceBounds bounds;
  for (const auto& [expr, value] : {std::pair{&node.start, &bounds.start},
                                    {&node.stop, &bounds.stop},
                                    {&node.step, &bounds.step}}) {
    if (*expr == nullptr) continue;
    HX_ASSIGN_OR_RETURN(*value, Eval(**expr, scope));
  }
  return GetSlice(context_, object, bounds);
}

Status Evaluator::EvalSpreads(const CallSyntax& syntax, Scope& scope,
                              CallArgs& args) {
  if (syntax.spread != nullptr) {
    HX_ASSIGN_OR_RETURN(const Value rest, Eval(*syntax.spread, scope));
    HX_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(context_, rest));
    for (Value& item : items) args.positional.push_back(std::move(item));
  }
  if (syntax.named_spread == nullptr) return OkStatus();
  HX_ASSIGN_OR_RETURN(const Value rest, Eval(*syntax.named_spread, scope));
  if (rest.dict() == nullptr)
    return context_.Fail(fmt::format(
        "argument after ** must be a mapping, not {}", rest.TypeName()));
  for (const auto& [key, value] : rest.dict()->entries()) {
    HX_RETURN_IF_ERROR(
        context_.Spend(1 + static_cast<int64_t>(args.named.size())));
    if (!key.IsString()) return context_.Fail("keywords must be strings");
    for (const auto& [name, other] : args.named) {
      if (name == key.text())
        return context_.Fail(
            fmt::format("got multiple values for keyword argument '{}'", name));
    }
    args.named.emplace_back(key.text(), value);
  }
  return OkStatus();
}

Result<CallArgs> Evaluator::EvalArgs(const CallSyntax& syntax, Scope& scope) {
  CallArgs args;
  for (const ExprPtr& expr : syntax.positional) {
    HX_ASSIGN_OR_RETURN(Value value, Eval(*expr, scope));
    args.positional.push_back(std::move(value));
  }
  for (const NamedExpr& argument : syntax.named) {
    HX_ASSIGN_OR_RETURN(Value value, Eval(*argument.value, scope));
    args.named.emplace_back(argument.name, std::move(value));
  }
  HX_RETURN_IF_ERROR(EvalSpreads(syntax, scope, args));
  return args;
}

Result<Value> Evaluator::EvalNode(const CallExpr& node, Scope& scope) {
  const int line = context_.line();
  HX_ASSIGN_OR_RETURN(const Value callee, Eval(*node.callee, scope));
  HX_ASSIGN_OR_RETURN(const CallArgs args, EvalArgs(node.args, scope));
  context_.set_line(line);
  return Call(context_, callee, args);
}

Result<Value> Evaluator::EvalCallBlock(const Expr& call, const Value& caller,
                                       Scope& scope) {
  const auto& node = std::get<CallExpr>(call.node);
  HX_ASSIGN_OR_RETURN(const Value callee, Eval(*node.callee, scope));
  HX_ASSIGN_OR_RETURN(CallArgs args, EvalArgs(node.args, scope));
  args.named.emplace_back("caller", caller);
  context_.set_line(call.line);
  return Call(context_, callee, args);
}

Result<Value> Evaluator::ApplyFilter(const FilterExpr& filter,
                                     const Value& input, Scope& scope) {
  const int line = context_.line();
  const NativeFunction function = FindFilter(filter.name);
  if (function == nullptr) {
    if (IsUnsupportedFilter(filter.name))
      return context_.Unsupported(fmt::format("the filter '{}'", filter.name));
    return context_.Fail(fmt::format("no filter named '{}'", filter.name));
  }
  HX_ASSIGN_OR_RETURN(const CallArgs args, EvalArgs(filter.args, scope));
  context_.set_line(line);
  return function(context_, input, args);
}

Result<Value> Evaluator::EvalNode(const FilterExpr& node, Scope& scope) {
  const int line = context_.line();
  HX_ASSIGN_OR_RETURN(const Value input, Eval(*node.input, scope));
  context_.set_line(line);
  return ApplyFilter(node, input, scope);
}

Result<Value> Evaluator::EvalFilterChain(const Expr& filter, const Value& text,
                                         Scope& scope) {
  const auto& node = std::get<FilterExpr>(filter.node);
  Value input = text;
  if (node.input != nullptr) {
    HX_ASSIGN_OR_RETURN(input, EvalFilterChain(*node.input, text, scope));
  }
  context_.set_line(filter.line);
  return ApplyFilter(node, input, scope);
}

Result<Value> Evaluator::EvalNode(const TestExpr& node, Scope& scope) {
  const int line = context_.line();
  HX_ASSIGN_OR_RETURN(const Value input, Eval(*node.input, scope));
  const TestFunction function = FindTest(node.name);
  if (function == nullptr)
    return context_.Fail(fmt::format("no test named '{}'", node.name));
  HX_ASSIGN_OR_RETURN(const CallArgs args, EvalArgs(node.args, scope));
  context_.set_line(line);
  HX_ASSIGN_OR_RETURN(const bool result, function(context_, input, args));
  return Value::Bool(result);
}

Result<Value> Evaluator::EvalNode(const UnaryExpr& node, Scope& scope) {
  HX_ASSIGN_OR_RETURN(const Value operand, Eval(*node.operand, scope));
  switch (node.op) {
    case UnaryOp::kNot:
      return Value::Bool(!operand.Truthy());
    case UnaryOp::kNegative:
      return Negate(context_, operand);
    case UnaryOp::kPositive:
      return Posate(context_, operand);
  }
  return Value();
}

Result<Value> Evaluator::EvalNode(const BinaryExpr& node, Scope& scope) {
  const int line = context_.line();
  HX_ASSIGN_OR_RETURN(Value left, Eval(*node.left, scope));
  if (node.op == BinaryOp::kAnd || node.op == BinaryOp::kOr) {
    if (left.Truthy() == (node.op == BinaryOp::kOr)) return left;
    return Eval(*node.right, scope);
  }
  HX_ASSIGN_OR_RETURN(const Value right, Eval(*node.right, scope));
  context_.set_line(line);
  return Arithmetic(context_, node.op, left, right);
}

Result<Value> Evaluator::EvalNode(const CompareExpr& node, Scope& scope) {
  HX_ASSIGN_OR_RETURN(Value left, Eval(*node.first, scope));
  for (const auto& [op, operand] : node.rest) {
    HX_ASSIGN_OR_RETURN(Value right, Eval(*operand, scope));
    HX_ASSIGN_OR_RETURN(const bool holds, Compare(context_, op, left, right));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Result<Value> Evaluator::EvalNode(const ConcatExpr& node, Scope& scope) {
  std::string text;
  for (const ExprPtr& part : node.parts) {
    HX_ASSIGN_OR_RETURN(const Value value, Eval(*part, scope));
    HX_ASSIGN_OR_RETURN(const std::string piece, ToText(context_, value));
    HX_RETURN_IF_ERROR(Append(piece, text));
  }
  return context_.NewString(std::move(text));
}

Result<Value> Evaluator::EvalNode(const ConditionalExpr& node, Scope& scope) {
  const int line = context_.line();
  HX_ASSIGN_OR_RETURN(const Value condition, Eval(*node.condition, scope));
  if (condition.Truthy()) return Eval(*node.then, scope);
  if (node.otherwise != nullptr) return Eval(*node.otherwise, scope);
  return Value::Missing(
      fmt::format("the inline if-expression on line {} evaluated to false and "
                  "no else section was defined.",
                  line));
}

Result<Value> Evaluator::EvalNode(const SequenceExpr& node, Scope& scope) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const ExprPtr& expr : node.items) {
    HX_ASSIGN_OR_RETURN(Value item, Eval(*expr, scope));
    items.push_back(std::move(item));
  }
  return node.tuple ? context_.NewTuple(std::move(items))
                    : context_.NewList(std::move(items));
}

Result<Value> Evaluator::EvalNode(const DictExpr& node, Scope& scope) {
  std::vector<Dict::Entry> entries;
  for (const auto& [key_expr, value_expr] : node.items) {
    HX_ASSIGN_OR_RETURN(Value key, Eval(*key_expr, scope));
    HX_ASSIGN_OR_RETURN(Value value, Eval(*value_expr, scope));
    entries.push_back({std::move(key), std::move(value)});
  }
  return context_.NewDict(std::move(entries));
}

}  // namespace hexllm::jinja

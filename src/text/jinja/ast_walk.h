// Visits the operands of an expression. Used by the passes over the tree.
#pragma once

#include <variant>

#include "text/jinja/ast.h"

namespace hexllm::jinja {

namespace walk {

template <typename Visit>
void Each(const ExprPtr& expr, Visit& visit) {
  if (expr != nullptr) visit(*expr);
}

template <typename Visit>
void Each(const std::vector<ExprPtr>& exprs, Visit& visit) {
  for (const ExprPtr& expr : exprs) Each(expr, visit);
}

template <typename Visit>
void Each(const CallSyntax& args, Visit& visit) {
  Each(args.positional, visit);
  for (const NamedExpr& named : args.named) Each(named.value, visit);
  Each(args.spread, visit);
  Each(args.named_spread, visit);
}

template <typename Visit>
void Operands(const ConstantExpr&, Visit&) {}
template <typename Visit>
void Operands(const NameExpr&, Visit&) {}
template <typename Visit>
void Operands(const AttributeExpr& node, Visit& visit) {
  Each(node.object, visit);
}
template <typename Visit>
void Operands(const ItemExpr& node, Visit& visit) {
  Each(node.object, visit);
  Each(node.key, visit);
}
template <typename Visit>
void Operands(const SliceExpr& node, Visit& visit) {
  Each(node.object, visit);
  Each(node.start, visit);
  Each(node.stop, visit);
  Each(node.step, visit);
}
template <typename Visit>
void Operands(const CallExpr& node, Visit& visit) {
  Each(node.callee, visit);
  Each(node.args, visit);
}
template <typename Visit>
void Operands(const FilterExpr& node, Visit& visit) {
  Each(node.input, visit);
  Each(node.args, visit);
}
template <typename Visit>
void Operands(const TestExpr& node, Visit& visit) {
  Each(node.input, visit);
  Each(node.args, visit);
}
template <typename Visit>
void Operands(const UnaryExpr& node, Visit& visit) {
  Each(node.operand, visit);
}
template <typename Visit>
void Operands(const BinaryExpr& node, Visit& visit) {
  Each(node.left, visit);
  Each(node.right, visit);
}
template <typename Visit>
void Operands(const CompareExpr& node, Visit& visit) {
  Each(node.first, visit);
  for (const auto& [op, operand] : node.rest) Each(operand, visit);
}
template <typename Visit>
void Operands(const ConcatExpr& node, Visit& visit) {
  Each(node.parts, visit);
}
template <typename Visit>
void Operands(const ConditionalExpr& node, Visit& visit) {
  Each(node.condition, visit);
  Each(node.then, visit);
  Each(node.otherwise, visit);
}
template <typename Visit>
void Operands(const SequenceExpr& node, Visit& visit) {
  Each(node.items, visit);
}
template <typename Visit>
void Operands(const DictExpr& node, Visit& visit) {
  for (const auto& [key, value] : node.items) {
    Each(key, visit);
    Each(value, visit);
  }
}

}  // namespace walk

// Calls visit(operand) for each direct operand of `expr`, in the order of the
// text; not for those that are not there.
template <typename Visit>
void ForEachOperand(const Expr& expr, Visit visit) {
  std::visit([&](const auto& node) { walk::Operands(node, visit); }, expr.node);
}

}  // namespace hexllm::jinja

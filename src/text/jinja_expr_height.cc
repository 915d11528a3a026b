#include "text/jinja_expr_height.h"

#include <algorithm>

namespace hexllm::jinja {
namespace {

int HeightOf(const ExprPtr& expr) { return expr == nullptr ? 0 : expr->height; }

int HeightOf(const CallSyntax& args) {
  int height = std::max(HeightOf(args.spread), HeightOf(args.named_spread));
  for (const ExprPtr& arg : args.positional)
    height = std::max(height, HeightOf(arg));
  for (const NamedExpr& arg : args.named)
    height = std::max(height, HeightOf(arg.value));
  return height;
}

}  // namespace

int HeightBelow(const ConstantExpr&) { return 0; }
int HeightBelow(const NameExpr&) { return 0; }
int HeightBelow(const AttributeExpr& e) { return HeightOf(e.object); }
int HeightBelow(const ItemExpr& e) {
  return std::max(HeightOf(e.object), HeightOf(e.key));
}
int HeightBelow(const SliceExpr& e) {
  return std::max({HeightOf(e.object), HeightOf(e.start), HeightOf(e.stop),
                   HeightOf(e.step)});
}
int HeightBelow(const CallExpr& e) {
  return std::max(HeightOf(e.callee), HeightOf(e.args));
}
int HeightBelow(const FilterExpr& e) {
  return std::max(HeightOf(e.input), HeightOf(e.args));
}
int HeightBelow(const TestExpr& e) {
  return std::max(HeightOf(e.input), HeightOf(e.args));
}
int HeightBelow(const UnaryExpr& e) { return HeightOf(e.operand); }
int HeightBelow(const BinaryExpr& e) {
  return std::max(HeightOf(e.left), HeightOf(e.right));
}
int HeightBelow(const CompareExpr& e) {
  int height = HeightOf(e.first);
  for (const auto& [op, operand] : e.rest)
    height = std::max(height, HeightOf(operand));
  return height;
}
int HeightBelow(const ConcatExpr& e) {
  int height = 0;
  for (const ExprPtr& part : e.parts) height = std::max(height, HeightOf(part));
  return height;
}
int HeightBelow(const ConditionalExpr& e) {
  return std::max(
      {HeightOf(e.condition), HeightOf(e.then), HeightOf(e.otherwise)});
}
int HeightBelow(const SequenceExpr& e) {
  int height = 0;
  for (const ExprPtr& item : e.items) height = std::max(height, HeightOf(item));
  return height;
}
int HeightBelow(const DictExpr& e) {
  int height = 0;
  for (const auto& [key, value] : e.items)
    height = std::max({height, HeightOf(key), HeightOf(value)});
  return height;
}

}  // namespace hexllm::jinja

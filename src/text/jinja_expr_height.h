// Heights of expression trees: the parser bounds them, so that walking a tree
// cannot exhaust the stack.
#pragma once

#include "text/jinja_ast.h"

namespace hexllm::jinja {

// The height of the highest operand of a node; 0 when it has none.
int HeightBelow(const ConstantExpr& e);
int HeightBelow(const NameExpr& e);
int HeightBelow(const AttributeExpr& e);
int HeightBelow(const ItemExpr& e);
int HeightBelow(const SliceExpr& e);
int HeightBelow(const CallExpr& e);
int HeightBelow(const FilterExpr& e);
int HeightBelow(const TestExpr& e);
int HeightBelow(const UnaryExpr& e);
int HeightBelow(const BinaryExpr& e);
int HeightBelow(const CompareExpr& e);
int HeightBelow(const ConcatExpr& e);
int HeightBelow(const ConditionalExpr& e);
int HeightBelow(const SequenceExpr& e);
int HeightBelow(const DictExpr& e);

}  // namespace hexllm::jinja

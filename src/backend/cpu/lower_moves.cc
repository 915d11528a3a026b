#include <numeric>

#include "backend/cpu/lower_emit.h"

namespace hexllm::cpu {
namespace {

constexpr size_t kMaxRank = 4;

// [T,G,D] to [G,D,T] or to [G,T,D], what the cache keeps: padding rows are left
// out.
Status EmitStore(GraphLowering& lowering, const ir::Node& node, PlanOp op) {
  HX_ASSIGN_OR_RETURN(const Operand x, lowering.Activation(node, 0));
  const Shape& shape = lowering.shape(node.inputs[0]);
  const RowRange rows = lowering.AxisRows(node.inputs[0]);
  const RowRange heads = lowering.Unordered(shape[1]);
  lowering.Emit(node, {.op = op,
                       .in = {x},
                       .out = lowering.Output(node, heads),
                       .rows = rows,
                       .ints = {shape[1], shape[2]}});
  return OkStatus();
}

// Elements after axis `axis`.
int64_t InnerElements(const Shape& shape, size_t axis) {
  return std::accumulate(shape.begin() + static_cast<int64_t>(axis) + 1,
                         shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

Status EmitTranspose(GraphLowering& lowering, const ir::Node& node) {
  std::vector<int64_t> perm = IntsAttr(node.attrs, ir::AttrName::kPerm);
  if (perm == std::vector<int64_t>{1, 2, 0}) {
    return EmitStore(lowering, node, PlanOp::kStoreK);
  }
  if (perm == std::vector<int64_t>{1, 0, 2}) {
    return EmitStore(lowering, node, PlanOp::kStoreV);
  }
  Shape shape = lowering.shape(node.inputs[0]);
  if (shape.size() > kMaxRank) {
    return lowering.Unsupported(node, "expected up to 4 axes");
  }
  // Axes of size 1 in front change nothing.
  const size_t missing = kMaxRank - shape.size();
  for (int64_t& axis : perm) axis += static_cast<int64_t>(missing);
  shape.insert(shape.begin(), missing, 1);
  std::vector<int64_t> ints = shape;
  for (size_t i = 0; i < missing; ++i) ints.push_back(static_cast<int64_t>(i));
  ints.insert(ints.end(), perm.begin(), perm.end());
  HX_ASSIGN_OR_RETURN(const Operand x, lowering.Activation(node, 0));
  const RowRange out_rows = lowering.Unordered(lowering.shape(node.output)[0]);
  lowering.Emit(node, {.op = PlanOp::kTranspose,
                       .in = {x},
                       .out = lowering.Output(node, out_rows),
                       .rows = lowering.Unordered(1),
                       .ints = std::move(ints)});
  return OkStatus();
}

Status EmitSliceRows(GraphLowering& lowering, const ir::Node& node) {
  HX_ASSIGN_OR_RETURN(const Operand x, lowering.Activation(node, 0));
  const RowRange from = lowering.AxisRows(node.inputs[0]);
  const int64_t begin = IntAttr(node.attrs, ir::AttrName::kBegin);
  const int64_t count = IntAttr(node.attrs, ir::AttrName::kCount);
  RowRange rows = lowering.Unordered(count);
  if (from.first < lowering.graph().step_tokens) {
    rows = {.first = from.first + begin, .count = count};
  }
  const int64_t width = ElementsOf(lowering.shape(node.inputs[0])) / from.count;
  lowering.Emit(node, {.op = PlanOp::kCopyRows,
                       .in = {x},
                       .out = lowering.Output(node, rows),
                       .rows = rows,
                       .ints = {begin, width}});
  return OkStatus();
}

Status EmitConcat(GraphLowering& lowering, const ir::Node& node) {
  const auto axis =
      static_cast<size_t>(IntAttr(node.attrs, ir::AttrName::kAxis));
  const Shape& out = lowering.shape(node.output);
  const int64_t inner = InnerElements(out, axis);
  const int64_t left = lowering.shape(node.inputs[0])[axis] * inner;
  const int64_t right = lowering.shape(node.inputs[1])[axis] * inner;
  if (ElementsOf(out) == 0) {
    return lowering.Unsupported(node, "expected an output with elements");
  }
  HX_ASSIGN_OR_RETURN(Operand a, lowering.Activation(node, 0));
  HX_ASSIGN_OR_RETURN(Operand b, lowering.Activation(node, 1));
  // The left side may be empty; then any memory will do for it.
  if (left == 0) a = b;
  if (right == 0) b = a;
  const RowRange rows = lowering.Unordered(ElementsOf(out) / (left + right));
  const bool swap = right == 0;
  lowering.Emit(node, {.op = PlanOp::kConcat,
                       .in = {a, b},
                       .out = lowering.Output(node, rows),
                       .rows = rows,
                       .ints = {swap ? right : left, swap ? left : right}});
  return OkStatus();
}

}  // namespace hexllm::cpu

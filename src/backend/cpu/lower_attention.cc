#include <fmt/format.h>

#include "backend/cpu/lower_emit.h"
#include "ir/encode.h"

namespace hexllm::cpu {
namespace {

// The step of a grid that input `i` lies on, or 0 when it has no codes.
float GridStep(const ir::Graph& graph, ir::ValueId id) {
  const auto& encoding = graph[id].encoding;
  return encoding && HasCodes(*encoding) ? encoding->scales[0] : 0.0f;
}

}  // namespace

Status EmitRope(GraphLowering& lowering, const ir::Node& node) {
  HX_ASSIGN_OR_RETURN(const Operand x, lowering.Activation(node, 0));
  HX_ASSIGN_OR_RETURN(const Operand cos, lowering.Activation(node, 1));
  HX_ASSIGN_OR_RETURN(const Operand sin, lowering.Activation(node, 2));
  const Shape& shape = lowering.shape(node.output);
  const int64_t half = lowering.shape(node.inputs[1])[1];
  const RowRange rows = lowering.AxisRows(node.inputs[0]);
  lowering.Emit(node, {.op = PlanOp::kRope,
                       .in = {x, cos, sin},
                       .out = lowering.Output(node, rows, {0}),
                       .rows = rows,
                       .ints = {shape[1], shape[2], half}});
  return OkStatus();
}

Status EmitAttention(GraphLowering& lowering, const ir::Node& node) {
  std::vector<Operand> in;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    HX_ASSIGN_OR_RETURN(const Operand operand, lowering.Activation(node, i));
    in.push_back(operand);
  }
  const Shape& q = lowering.shape(node.inputs[0]);
  const Shape& k_past = lowering.shape(node.inputs[1]);
  const ir::Graph& graph = lowering.graph();
  if (q[0] != graph.step_tokens ||
      k_past[2] != graph.context_tokens - graph.step_tokens) {
    return lowering.Unsupported(
        node, fmt::format("expected attention of the {} step tokens over the "
                          "{} context tokens",
                          graph.step_tokens, graph.context_tokens));
  }
  if (graph[node.inputs[5]].encoding) {
    return lowering.Unsupported(
        node, "expected a mask of 0 and -infinity, found one with an encoding");
  }
  const RowRange rows = lowering.StepRows();
  lowering.Emit(node, {.op = PlanOp::kAttention,
                       .in = std::move(in),
                       .out = lowering.Output(node, rows),
                       .rows = rows,
                       .ints = {q[1], k_past[0], q[2]},
                       .floats = {FloatOf(node, ir::AttrName::kScale),
                                  FloatOf(node, ir::AttrName::kSoftcap)}});
  return OkStatus();
}

// With codes on both sides, sums are of whole numbers.
Status EmitMatMul(GraphLowering& lowering, const ir::Node& node) {
  HX_ASSIGN_OR_RETURN(const Operand a, lowering.Activation(node, 0));
  HX_ASSIGN_OR_RETURN(const Operand b, lowering.Activation(node, 1));
  const Shape& shape = lowering.shape(node.inputs[0]);
  const Shape& out = lowering.shape(node.output);
  float a_step = GridStep(lowering.graph(), node.inputs[0]);
  float b_step = GridStep(lowering.graph(), node.inputs[1]);
  if (a_step == 0 || b_step == 0) a_step = b_step = 0;
  const int64_t dropped =
      OptionalIntAttr(node.attrs, ir::AttrName::kDroppedBits);
  int64_t a_zero = 0;
  if (a_step != 0)
    a_zero =
        UnsignedGridOf(*lowering.graph()[node.inputs[0]].encoding)->zero_point;
  if (dropped > 0 && a_step == 0)
    return lowering.Unsupported(node, "dropped_bits: expected inputs in codes");
  const RowRange rows = lowering.Unordered(out[0]);
  lowering.Emit(
      node, {.op = PlanOp::kBatchMatMul,
             .in = {a, b},
             .out = lowering.Output(node, rows),
             .rows = rows,
             .ints = {shape[1], shape[2], out[2], a_zero, dropped},
             .floats = {FloatOf(node, ir::AttrName::kScale), a_step, b_step}});
  return OkStatus();
}

Status EmitSoftmax(GraphLowering& lowering, const ir::Node& node) {
  HX_ASSIGN_OR_RETURN(const Operand x, lowering.Activation(node, 0));
  const Shape& shape = lowering.shape(node.output);
  const int64_t width = shape.back();
  const RowRange rows = lowering.Unordered(ElementsOf(shape) / width);
  Instruction softmax{.op = PlanOp::kSoftmax, .ints = {width}};
  if (IsInFixedPoint(node)) {
    const auto& scores = lowering.graph()[node.inputs[0]].encoding;
    const auto& y = lowering.graph()[node.output].encoding;
    if (!scores || !UnsignedGridOf(*scores) || !y || y->dtype != DType::kU16) {
      return lowering.Unsupported(
          node, "fixed_point: expected codes of the input, u16 of the output");
    }
    softmax.op = PlanOp::kChipSoftmax;
    softmax.floats = {scores->scales[0]};
  }
  softmax.in = {x};
  softmax.out = lowering.Output(node, rows, {0});
  softmax.rows = rows;
  lowering.Emit(node, std::move(softmax));
  return OkStatus();
}

}  // namespace hexllm::cpu

#include "backend/cpu/lower_ops.h"

#include <iterator>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/lower_emit.h"
#include "base/check.h"

namespace hexllm::cpu {
namespace {

using ir::AttrName;
using ir::Node;
using ir::OpKind;

using EmitFn = Status (*)(GraphLowering&, const Node&);

int64_t IntOf(Activation activation) {
  return static_cast<int64_t>(activation);
}

// --- Norms ---

// A norm over the last axis of input 0; the other inputs are weights. `norm`
// has the numbers beside the sizes.
Status EmitNorm(GraphLowering& lowering, const Node& node, Instruction norm) {
  HX_ASSIGN_OR_RETURN(const Operand x, lowering.Activation(node, 0));
  std::vector<Operand> in = {x};
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    HX_ASSIGN_OR_RETURN(const Operand weight,
                        lowering.Weight(node, i, WeightForm::kF32));
    in.push_back(weight);
  }
  const Shape& shape = lowering.shape(node.output);
  const int64_t width = shape.back();
  const int64_t vectors = ElementsOf(shape) / width;
  RowRange rows = lowering.MemoryRows(node.inputs[0]);
  if (vectors % rows.count != 0) rows = lowering.Unordered(vectors);
  norm.in = std::move(in);
  norm.out = lowering.Output(node, rows, {0});
  norm.rows = rows;
  norm.ints.insert(norm.ints.begin(), {vectors / rows.count, width});
  lowering.Emit(node, std::move(norm));
  return OkStatus();
}

Status EmitRmsNorm(GraphLowering& lowering, const Node& node) {
  const bool fast_root = OptionalIntAttr(node.attrs, AttrName::kFastRoot) != 0;
  const bool down = IsNormRoundedDown(node);
  Instruction norm{.op = PlanOp::kRmsNorm,
                   .floats = {FloatOf(node, AttrName::kEps),
                              FloatOf(node, AttrName::kWeightOffset)}};
  if (fast_root || down) {
    const auto& y = lowering.graph()[node.output].encoding;
    if (down && !(y && y->dtype == DType::kU16))
      return lowering.Unsupported(node, "rounds_down: expected codes of u16");
    norm.op = PlanOp::kChipRmsNorm;
    norm.ints = {fast_root ? 1 : 0, down ? UnsignedGridOf(*y)->zero_point : 0};
    norm.floats.push_back(down ? y->scales[0] : 0.0f);
  }
  return EmitNorm(lowering, node, std::move(norm));
}

Status EmitLayerNorm(GraphLowering& lowering, const Node& node) {
  return EmitNorm(
      lowering, node,
      {.op = PlanOp::kLayerNorm, .floats = {FloatOf(node, AttrName::kEps)}});
}

// --- Element by element ---

// The numbers of an element-wise op beside its width.
struct ElementWise {
  PlanOp op;
  std::vector<int64_t> ints = {};
  std::vector<float> floats = {};
};

Status EmitElementWise(GraphLowering& lowering, const Node& node,
                       ElementWise what) {
  std::vector<Operand> in;
  RowRange rows = lowering.MemoryRows(node.inputs[0]);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    HX_ASSIGN_OR_RETURN(const Operand operand, lowering.Activation(node, i));
    in.push_back(operand);
    if (lowering.MemoryRows(node.inputs[i]) != rows) {
      rows = lowering.Unordered(1);
    }
  }
  const int64_t width = ElementsOf(lowering.shape(node.output)) / rows.count;
  what.ints.insert(what.ints.begin(), width);
  lowering.Emit(node, {.op = what.op,
                       .in = std::move(in),
                       .out = lowering.Output(node, rows, {0, 1}),
                       .rows = rows,
                       .ints = std::move(what.ints),
                       .floats = std::move(what.floats)});
  return OkStatus();
}

// b repeats: its shape is that of the last axes of a.
Status EmitAddRow(GraphLowering& lowering, const Node& node) {
  HX_ASSIGN_OR_RETURN(const Operand a, lowering.Activation(node, 0));
  HX_ASSIGN_OR_RETURN(const Operand b, lowering.Activation(node, 1));
  const int64_t width = ElementsOf(lowering.shape(node.inputs[1]));
  const RowRange rows =
      lowering.Unordered(ElementsOf(lowering.shape(node.output)) / width);
  lowering.Emit(node, {.op = PlanOp::kAddRow,
                       .in = {a, b},
                       .out = lowering.Output(node, rows, {0}),
                       .rows = rows,
                       .ints = {width}});
  return OkStatus();
}

Status EmitAdd(GraphLowering& lowering, const Node& node) {
  if (lowering.shape(node.inputs[0]) != lowering.shape(node.inputs[1])) {
    return EmitAddRow(lowering, node);
  }
  return EmitElementWise(lowering, node, {.op = PlanOp::kAdd});
}

Status EmitMul(GraphLowering& lowering, const Node& node) {
  return EmitElementWise(lowering, node, {.op = PlanOp::kMul});
}

Status EmitScale(GraphLowering& lowering, const Node& node) {
  return EmitElementWise(
      lowering, node,
      {.op = PlanOp::kScale, .floats = {FloatOf(node, AttrName::kFactor)}});
}

Status EmitSilu(GraphLowering& lowering, const Node& node) {
  return EmitElementWise(
      lowering, node,
      {.op = PlanOp::kActivate, .ints = {IntOf(Activation::kSilu)}});
}

Status EmitGelu(GraphLowering& lowering, const Node& node) {
  const bool tanh = IntAttr(node.attrs, AttrName::kApproximate) != 0;
  const Activation gelu = tanh ? Activation::kGeluTanh : Activation::kGeluErf;
  return EmitElementWise(lowering, node,
                         {.op = PlanOp::kActivate, .ints = {IntOf(gelu)}});
}

Status EmitSoftcap(GraphLowering& lowering, const Node& node) {
  return EmitElementWise(
      lowering, node,
      {.op = PlanOp::kSoftcap, .floats = {FloatOf(node, AttrName::kCap)}});
}

// The attribute counts as Activation does: 0 silu, 1 gelu tanh, 2 gelu erf.
static_assert(static_cast<int>(Activation::kSilu) == 0 &&
              static_cast<int>(Activation::kGeluTanh) == 1 &&
              static_cast<int>(Activation::kGeluErf) == 2);

Status EmitGatedMul(GraphLowering& lowering, const Node& node) {
  return EmitElementWise(
      lowering, node,
      {.op = PlanOp::kGatedMul,
       .ints = {IntAttr(node.attrs, AttrName::kActivation)}});
}

// Ops that keep their input's memory never get here.
Status EmitNothing(GraphLowering&, const Node&) {
  CheckFailed(__FILE__, __LINE__, "this op keeps its input's memory");
}

// One row per row of ir/ops.def, in its order.
struct EmitRow {
  OpKind op;
  EmitFn emit;
};
constexpr EmitRow kEmit[] = {
    {OpKind::kEmbedding, EmitEmbedding},
    {OpKind::kLinear, EmitLinear},
    {OpKind::kRmsNorm, EmitRmsNorm},
    {OpKind::kRope, EmitRope},
    {OpKind::kAttention, EmitAttention},
    {OpKind::kReshape, EmitNothing},
    {OpKind::kTranspose, EmitTranspose},
    {OpKind::kSliceRows, EmitSliceRows},
    {OpKind::kAdd, EmitAdd},
    {OpKind::kMul, EmitMul},
    {OpKind::kScale, EmitScale},
    {OpKind::kSilu, EmitSilu},
    {OpKind::kGelu, EmitGelu},
    {OpKind::kSoftcap, EmitSoftcap},
    {OpKind::kGatedMul, EmitGatedMul},
    {OpKind::kLinearAdd, EmitLinear},
    {OpKind::kMatMul, EmitMatMul},
    {OpKind::kConcat, EmitConcat},
    {OpKind::kSoftmax, EmitSoftmax},
    {OpKind::kConvert, EmitNothing},
    {OpKind::kLayerNorm, EmitLayerNorm},
};

}  // namespace

Status EmitNode(GraphLowering& lowering, const Node& node) {
  const auto index = static_cast<size_t>(node.op);
  if (index >= std::size(kEmit)) {
    return lowering.Unsupported(node, "this op has no CPU form");
  }
  HX_CHECK(kEmit[index].op == node.op);
  return kEmit[index].emit(lowering, node);
}

}  // namespace hexllm::cpu

#include "backend/cpu/lower_ops.h"

#include <fmt/format.h>

#include <iterator>

#include "backend/cpu/engine.h"
#include "backend/cpu/kernels/kernels.h"
#include "base/check.h"

namespace hexllm::cpu {
namespace {

using ir::AttrName;
using ir::Node;
using ir::OpKind;

using EmitFn = Status (*)(GraphLowering&, const Node&);

int64_t Elements(const Shape& shape) {
  const auto elements = NumElements(shape);
  HX_CHECK(elements.has_value());
  return *elements;
}

float FloatOf(const Node& node, AttrName name) {
  return static_cast<float>(FloatAttr(node.attrs, name));
}

int64_t IntOf(Activation activation) {
  return static_cast<int64_t>(activation);
}

// --- Weights ---

Status EmitEmbedding(GraphLowering& lowering, const Node& node) {
  HX_ASSIGN_OR_RETURN(const Operand token,
                      lowering.Activation(node, 0, DType::kI32));
  HX_ASSIGN_OR_RETURN(const Operand table,
                      lowering.Weight(node, 1, WeightForm::kStored));
  const RowRange rows = lowering.AxisRows(node.inputs[0]);
  lowering.Emit(node, {.op = PlanOp::kEmbed,
                       .in = {token, table},
                       .out = lowering.Output(node, rows),
                       .rows = rows});
  return OkStatus();
}

// linear(x, w, bias?) and linear_add(x, w, residual, bias?).
Status EmitMatMul(GraphLowering& lowering, const Node& node) {
  const bool add = node.op == OpKind::kLinearAdd;
  const size_t bias_at = add ? 3 : 2;
  HX_ASSIGN_OR_RETURN(const Operand x, lowering.Activation(node, 0));
  HX_ASSIGN_OR_RETURN(const Operand w,
                      lowering.Weight(node, 1, WeightForm::kStored));
  const DType dtype = lowering.graph().type(node.inputs[1]).dtype;
  if (FindKernels(Isa::kScalar)->matmul[static_cast<size_t>(dtype)] ==
      nullptr) {
    return lowering.Unsupported(
        node, fmt::format("no kernel for {} weights", DTypeName(dtype)));
  }
  Operand bias;
  if (node.inputs.size() > bias_at) {
    HX_ASSIGN_OR_RETURN(bias, lowering.Weight(node, bias_at, WeightForm::kF32));
  }
  Operand residual;
  if (add) {
    HX_ASSIGN_OR_RETURN(residual, lowering.Activation(node, 2));
  }
  const RowRange rows = lowering.AxisRows(node.inputs[0]);
  const Operand out =
      add ? lowering.Output(node, rows, {2}) : lowering.Output(node, rows);
  lowering.Emit(node, {.op = PlanOp::kMatMul,
                       .in = {x, w, bias, residual},
                       .out = out,
                       .rows = rows});
  return OkStatus();
}

Status EmitRmsNorm(GraphLowering& lowering, const Node& node) {
  HX_ASSIGN_OR_RETURN(const Operand x, lowering.Activation(node, 0));
  HX_ASSIGN_OR_RETURN(const Operand weight,
                      lowering.Weight(node, 1, WeightForm::kF32));
  const Shape& shape = lowering.shape(node.output);
  const int64_t width = shape.back();
  const int64_t vectors = Elements(shape) / width;
  RowRange rows = lowering.MemoryRows(node.inputs[0]);
  if (vectors % rows.count != 0) rows = lowering.Unordered(vectors);
  lowering.Emit(node, {.op = PlanOp::kRmsNorm,
                       .in = {x, weight},
                       .out = lowering.Output(node, rows, {0}),
                       .rows = rows,
                       .ints = {vectors / rows.count, width},
                       .floats = {FloatOf(node, AttrName::kEps),
                                  FloatOf(node, AttrName::kWeightOffset)}});
  return OkStatus();
}

// --- Attention and its inputs ---

Status EmitRope(GraphLowering& lowering, const Node& node) {
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

Status EmitAttention(GraphLowering& lowering, const Node& node) {
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
  const RowRange rows{.first = 0, .count = graph.step_tokens};
  lowering.Emit(node, {.op = PlanOp::kAttention,
                       .in = std::move(in),
                       .out = lowering.Output(node, rows),
                       .rows = rows,
                       .ints = {q[1], k_past[0], q[2]},
                       .floats = {FloatOf(node, AttrName::kScale),
                                  FloatOf(node, AttrName::kSoftcap)}});
  return OkStatus();
}

// The two transposes of attention: [T,G,D] to [G,D,T] and to [G,T,D].
Status EmitTranspose(GraphLowering& lowering, const Node& node) {
  const std::vector<int64_t>& perm = IntsAttr(node.attrs, AttrName::kPerm);
  const bool to_k = perm == std::vector<int64_t>{1, 2, 0};
  const bool to_v = perm == std::vector<int64_t>{1, 0, 2};
  if (!to_k && !to_v) {
    return lowering.Unsupported(
        node,
        "expected [T,G,D] to [G,D,T] or to [G,T,D] (perm [1,2,0] or "
        "[1,0,2])");
  }
  HX_ASSIGN_OR_RETURN(const Operand x, lowering.Activation(node, 0));
  const Shape& shape = lowering.shape(node.inputs[0]);
  const RowRange rows = lowering.AxisRows(node.inputs[0]);
  const RowRange heads = lowering.Unordered(shape[1]);
  lowering.Emit(node, {.op = to_k ? PlanOp::kStoreK : PlanOp::kStoreV,
                       .in = {x},
                       .out = lowering.Output(node, heads),
                       .rows = rows,
                       .ints = {shape[1], shape[2]}});
  return OkStatus();
}

Status EmitSliceRows(GraphLowering& lowering, const Node& node) {
  HX_ASSIGN_OR_RETURN(const Operand x, lowering.Activation(node, 0));
  const RowRange from = lowering.AxisRows(node.inputs[0]);
  const int64_t begin = IntAttr(node.attrs, AttrName::kBegin);
  const int64_t count = IntAttr(node.attrs, AttrName::kCount);
  RowRange rows = lowering.Unordered(count);
  if (from.first < lowering.graph().step_tokens) {
    rows = {.first = from.first + begin, .count = count};
  }
  const int64_t width = Elements(lowering.shape(node.inputs[0])) / from.count;
  lowering.Emit(node, {.op = PlanOp::kCopyRows,
                       .in = {x},
                       .out = lowering.Output(node, rows),
                       .rows = rows,
                       .ints = {begin, width}});
  return OkStatus();
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
  const int64_t width = Elements(lowering.shape(node.output)) / rows.count;
  what.ints.insert(what.ints.begin(), width);
  lowering.Emit(node, {.op = what.op,
                       .in = std::move(in),
                       .out = lowering.Output(node, rows, {0, 1}),
                       .rows = rows,
                       .ints = std::move(what.ints),
                       .floats = std::move(what.floats)});
  return OkStatus();
}

Status EmitAdd(GraphLowering& lowering, const Node& node) {
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

// A reshape is an alias and never gets here.
Status EmitReshape(GraphLowering&, const Node&) {
  CheckFailed(__FILE__, __LINE__, "reshape is an alias");
}

// One row per row of ir/ops.def, in its order.
struct EmitRow {
  OpKind op;
  EmitFn emit;
};
constexpr EmitRow kEmit[] = {
    {OpKind::kEmbedding, EmitEmbedding},
    {OpKind::kLinear, EmitMatMul},
    {OpKind::kRmsNorm, EmitRmsNorm},
    {OpKind::kRope, EmitRope},
    {OpKind::kAttention, EmitAttention},
    {OpKind::kReshape, EmitReshape},
    {OpKind::kTranspose, EmitTranspose},
    {OpKind::kSliceRows, EmitSliceRows},
    {OpKind::kAdd, EmitAdd},
    {OpKind::kMul, EmitMul},
    {OpKind::kScale, EmitScale},
    {OpKind::kSilu, EmitSilu},
    {OpKind::kGelu, EmitGelu},
    {OpKind::kSoftcap, EmitSoftcap},
    {OpKind::kGatedMul, EmitGatedMul},
    {OpKind::kLinearAdd, EmitMatMul},
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

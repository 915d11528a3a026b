// Ops whose second input is a weight: embedding, and the three kinds of linear.
#include <fmt/format.h>

#include "backend/cpu/engine.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/lower_emit.h"
#include "backend/cpu/lower_panels.h"
#include "backend/cpu/row_codes.h"
#include "ir/encode.h"

namespace hexllm::cpu {
namespace {

using ir::Node;
using ir::OpKind;

// linear(x, w, bias?) or linear_add(x, w, residual, bias?).
struct LinearNode {
  const Node& node;
  ir::ConstantId w;
  RowRange rows;
  bool adds() const { return node.op == OpKind::kLinearAdd; }
  size_t bias_at() const { return adds() ? 3 : 2; }
  bool has_bias() const { return node.inputs.size() > bias_at(); }
  int64_t dropped_bits() const {
    return OptionalIntAttr(node.attrs, ir::AttrName::kDroppedBits);
  }
};

// Bias in f32 and residual, absent where the node has none.
struct Addends {
  Operand bias;
  Operand residual;
};

Result<Addends> FloatAddends(GraphLowering& lowering,
                             const LinearNode& linear) {
  Addends addends;
  if (linear.has_bias()) {
    HX_ASSIGN_OR_RETURN(
        addends.bias,
        lowering.Weight(linear.node, linear.bias_at(), WeightForm::kF32));
  }
  if (linear.adds()) {
    HX_ASSIGN_OR_RETURN(addends.residual, lowering.Activation(linear.node, 2));
  }
  return addends;
}

// The output, in place of the residual where that is possible.
Operand LinearOutput(GraphLowering& lowering, const LinearNode& linear) {
  return linear.adds() ? lowering.Output(linear.node, linear.rows, {2})
                       : lowering.Output(linear.node, linear.rows);
}

// --- Weights as numbers ---

// Codes are numbers where x has none.
WeightForm NumbersOf(const ir::Constant& w) {
  if (!w.encoding) return WeightForm::kStored;
  if (HasCodes(*w.encoding)) return WeightForm::kF32;
  return w.type.dtype == DType::kF16 ? WeightForm::kStored : WeightForm::kF16;
}

Status EmitFloat(GraphLowering& lowering, const LinearNode& linear) {
  const ir::Constant& w = lowering.constant(linear.w);
  const WeightForm form = NumbersOf(w);
  const DType dtype = form == WeightForm::kF32   ? DType::kF32
                      : form == WeightForm::kF16 ? DType::kF16
                                                 : w.type.dtype;
  if (FindKernels(Isa::kScalar)->matmul[static_cast<size_t>(dtype)] ==
      nullptr) {
    return lowering.Unsupported(
        linear.node, fmt::format("no kernel for {} weights", DTypeName(dtype)));
  }
  HX_ASSIGN_OR_RETURN(const Operand x, lowering.Activation(linear.node, 0));
  const Operand weight = lowering.Weight({.id = linear.w, .form = form});
  HX_ASSIGN_OR_RETURN(const Addends addends, FloatAddends(lowering, linear));
  lowering.Emit(linear.node, {.op = PlanOp::kMatMul,
                              .in = {x, weight, addends.bias, addends.residual},
                              .out = LinearOutput(lowering, linear),
                              .rows = linear.rows});
  return OkStatus();
}

// --- Weights in blocks: x is rounded at run time ---

Status EmitBlocks(GraphLowering& lowering, const LinearNode& linear) {
  const int64_t k = RowElems(lowering.constant(linear.w));
  HX_ASSIGN_OR_RETURN(
      const Operand x,
      lowering.Prepare(linear.node, 0, linear.rows,
                       {.op = PlanOp::kQuantizeRows,
                        .bytes = QuantizedBytes(linear.rows.count, k),
                        .ints = {k}}));
  const Operand weight =
      lowering.Weight({.id = linear.w, .form = WeightForm::kPanels});
  HX_ASSIGN_OR_RETURN(const Addends addends, FloatAddends(lowering, linear));
  lowering.Emit(linear.node, {.op = PlanOp::kMatMulQ,
                              .in = {x, weight, addends.bias, addends.residual},
                              .out = LinearOutput(lowering, linear),
                              .rows = linear.rows});
  return OkStatus();
}

// --- Weights in codes: so is x ---

Status EmitCodes(GraphLowering& lowering, const LinearNode& linear,
                 const UnsignedGrid& x_grid) {
  if (linear.adds()) {
    return lowering.Unsupported(
        linear.node,
        "expected a linear whose output is rounded before it is "
        "added to something");
  }
  const int64_t k = RowElems(lowering.constant(linear.w));
  const int64_t bytes = RowCodesBytes(linear.rows.count, k);
  HX_ASSIGN_OR_RETURN(
      const Operand x,
      lowering.Prepare(linear.node, 0, linear.rows,
                       {.op = PlanOp::kRowCodes,
                        .bytes = bytes,
                        .ints = {k, x_grid.code_bytes, x_grid.zero_point},
                        .floats = {x_grid.scale}}));
  const auto use = [&](WeightForm form) {
    return lowering.Weight({.id = linear.w, .form = form});
  };
  std::vector<Operand> in = {x, use(WeightForm::kPanels),
                             use(WeightForm::kScales), use(WeightForm::kSums)};
  if (linear.has_bias()) {
    HX_ASSIGN_OR_RETURN(const ir::ConstantId bias,
                        lowering.ConstantOf(linear.node, linear.bias_at()));
    in.push_back(lowering.Weight({.id = bias,
                                  .form = WeightForm::kBiasCodes,
                                  .linear = linear.w,
                                  .x_scale = x_grid.scale}));
  }
  Instruction matmul{
      .op = PlanOp::kCodeMatMul,
      .in = std::move(in),
      .out = LinearOutput(lowering, linear),
      .rows = linear.rows,
      .ints = {x_grid.code_bytes, x_grid.zero_point, linear.dropped_bits()},
      .floats = {x_grid.scale}};
  if (IsInFixedPoint(linear.node)) {
    const ir::Encoding& y = *lowering.graph()[linear.node.output].encoding;
    matmul.op = PlanOp::kFixedPointMatMul;
    matmul.ints = {x_grid.zero_point, UnsignedGridOf(y)->zero_point};
    matmul.floats.push_back(y.scales[0]);
  }
  lowering.Emit(linear.node, std::move(matmul));
  return OkStatus();
}

bool HasHalves(const GraphLowering& lowering, const Node& node) {
  const auto& encoding = lowering.graph()[node.inputs[0]].encoding;
  return encoding && encoding->dtype == DType::kF16;
}

// Codes of u8 in and out, without another attribute.
bool CanBeFixedPoint(const GraphLowering& lowering, const LinearNode& linear) {
  const auto is_u8 = [&](ir::ValueId id) {
    const auto& encoding = lowering.graph()[id].encoding;
    return encoding && encoding->dtype == DType::kU8;
  };
  return linear.dropped_bits() == 0 && is_u8(linear.node.inputs[0]) &&
         is_u8(linear.node.output);
}

// The grid of x, or nothing when it has no codes.
std::optional<UnsignedGrid> InputGrid(const GraphLowering& lowering,
                                      const Node& node) {
  const auto& encoding = lowering.graph()[node.inputs[0]].encoding;
  return encoding ? UnsignedGridOf(*encoding) : std::nullopt;
}

}  // namespace

Status EmitEmbedding(GraphLowering& lowering, const Node& node) {
  HX_ASSIGN_OR_RETURN(const Operand token,
                      lowering.Activation(node, 0, DType::kI32));
  HX_ASSIGN_OR_RETURN(const ir::ConstantId id, lowering.ConstantOf(node, 1));
  const auto& encoding = lowering.constant(id).encoding;
  if (encoding && encoding->dtype != lowering.constant(id).type.dtype) {
    return lowering.Unsupported(
        node, "expected a table without an encoding; round the output");
  }
  const RowRange rows = lowering.AxisRows(node.inputs[0]);
  lowering.Emit(node, {.op = PlanOp::kEmbed,
                       .in = {token, lowering.Table(id)},
                       .out = lowering.Output(node, rows),
                       .rows = rows});
  return OkStatus();
}

Status EmitLinear(GraphLowering& lowering, const Node& node) {
  HX_ASSIGN_OR_RETURN(const ir::ConstantId w, lowering.ConstantOf(node, 1));
  const LinearNode linear{
      .node = node, .w = w, .rows = lowering.AxisRows(node.inputs[0])};
  const ir::Constant& constant = lowering.constant(w);
  const auto& encoding = constant.encoding;
  const bool codes = encoding && HasCodes(*encoding);
  if (linear.dropped_bits() > 0 && !codes) {
    return lowering.Unsupported(
        node, "dropped_bits: expected codes of input and weight");
  }
  if (IsInFixedPoint(node) && !(codes && CanBeFixedPoint(lowering, linear))) {
    return lowering.Unsupported(
        node,
        "fixed_point: expected codes of u8 of input and output, and codes of "
        "the weight");
  }
  if (!encoding || encoding->dtype == DType::kF16 ||
      (codes && HasHalves(lowering, node))) {
    return EmitFloat(lowering, linear);
  }
  if (!PanelType(constant)) {
    return lowering.Unsupported(
        node, fmt::format("expected a weight encoded as q4_1, q8_0, or as i8 "
                          "or i16 per row or tensor with up to {} columns",
                          kMaxCodeDepth));
  }
  if (IsBlockType(encoding->dtype)) return EmitBlocks(lowering, linear);
  const auto grid = InputGrid(lowering, node);
  if (!grid) {
    return lowering.Unsupported(
        node,
        "the weight has codes; expected codes of 8 or 16 bits or f16 of "
        "input 0 too");
  }
  return EmitCodes(lowering, linear, *grid);
}

}  // namespace hexllm::cpu

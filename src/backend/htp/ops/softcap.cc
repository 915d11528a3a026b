// softcap: cap * tanh(x / cap), as Tanh between two products; the first is
// mostly in the tensors before it (lower_factors.h). In f16, whose Tanh is off
// by up to 2^-8, tanh(z) is 2 sigmoid(2 z) - 1.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {
namespace {

// Codes of -1 to 1.
ir::Encoding Signed(DType dtype) {
  if (dtype == DType::kF16) return {.dtype = dtype};
  const int32_t middle = dtype == DType::kU8 ? 128 : 32768;
  return {.dtype = dtype,
          .scales = {1 / static_cast<float>(middle)},
          .zero_points = {middle}};
}

// x / cap.
Result<TensorId> Divided(GraphLowering& lowering, const ir::Node& node,
                         const Layout& layout) {
  const DType dtype = lowering.ArithmeticOf(node);
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, dtype, layout));
  const double factor = lowering.factors().Remaining(node);
  if (factor == 1) return x;
  const ir::Encoding encoding =
      ScaledBy(factor, WidenedTo(dtype, lowering.EncodingOf(node.inputs[0])));
  HX_ASSIGN_OR_RETURN(const TensorId divided,
                      lowering.Inner(node, {.suffix = ".divided",
                                            .dims = layout.dims,
                                            .encoding = encoding}));
  HX_ASSIGN_OR_RETURN(const TensorId scale,
                      lowering.Scalar(node, dtype, factor));
  HX_RETURN_IF_ERROR(lowering.Emit(
      node, {.op = "ElementWiseMultiply", .inputs = {x, scale}}, divided));
  return divided;
}

// cap * tanh of `z`, in f16.
Status EmitHalf(GraphLowering& lowering, const ir::Node& node, TensorId z,
                const Layout& layout) {
  const double cap = FloatAttr(node.attrs, ir::AttrName::kCap);
  const auto step = [&](const char* op, std::vector<TensorId> inputs,
                        const char* suffix) {
    return lowering.EmitInner(node,
                              {.suffix = suffix,
                               .dims = layout.dims,
                               .encoding = Signed(DType::kF16)},
                              {.op = op, .inputs = std::move(inputs)});
  };
  HX_ASSIGN_OR_RETURN(const TensorId two,
                      lowering.Scalar(node, DType::kF16, 2));
  HX_ASSIGN_OR_RETURN(const TensorId scale,
                      lowering.Scalar(node, DType::kF16, 2 * cap));
  HX_ASSIGN_OR_RETURN(const TensorId shift,
                      lowering.Scalar(node, DType::kF16, cap));
  HX_ASSIGN_OR_RETURN(const TensorId doubled,
                      step("ElementWiseMultiply", {z, two}, ".doubled"));
  HX_ASSIGN_OR_RETURN(const TensorId sigmoid,
                      step("Sigmoid", {doubled}, ".sigmoid"));
  HX_ASSIGN_OR_RETURN(const TensorId scaled,
                      step("ElementWiseMultiply", {sigmoid, scale}, ".scaled"));
  return lowering.EmitOutput(
      node, DType::kF16, layout,
      {.op = "ElementWiseSubtract", .inputs = {scaled, shift}});
}

}  // namespace

Status EmitSoftcap(GraphLowering& lowering, const ir::Node& node) {
  const DType dtype = lowering.ArithmeticOf(node);
  const Layout layout = lowering.AnyLayout(node, 0);
  HX_ASSIGN_OR_RETURN(const TensorId divided, Divided(lowering, node, layout));
  if (dtype == DType::kF16) return EmitHalf(lowering, node, divided, layout);
  HX_ASSIGN_OR_RETURN(
      const TensorId tanh,
      lowering.EmitInner(
          node,
          {.suffix = ".tanh", .dims = layout.dims, .encoding = Signed(dtype)},
          {.op = "Tanh", .inputs = {divided}}));
  HX_ASSIGN_OR_RETURN(
      const TensorId cap,
      lowering.Scalar(node, dtype, FloatAttr(node.attrs, ir::AttrName::kCap)));
  return lowering.EmitOutput(
      node, dtype, layout,
      {.op = "ElementWiseMultiply", .inputs = {tanh, cap}});
}

}  // namespace hexllm::htp

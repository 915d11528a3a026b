// softcap: cap * tanh(x / cap), as Tanh between two products; the first is
// mostly in the tensors before it (lower_factors.h).
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

}  // namespace

Status EmitSoftcap(GraphLowering& lowering, const ir::Node& node) {
  const DType dtype = lowering.ArithmeticOf(node);
  const Layout layout = lowering.AnyLayout(node, 0);
  HX_ASSIGN_OR_RETURN(const TensorId divided, Divided(lowering, node, layout));
  HX_ASSIGN_OR_RETURN(const TensorId tanh,
                      lowering.Inner(node, {.suffix = ".tanh",
                                            .dims = layout.dims,
                                            .encoding = Signed(dtype)}));
  HX_RETURN_IF_ERROR(
      lowering.Emit(node, {.op = "Tanh", .inputs = {divided}}, tanh));
  HX_ASSIGN_OR_RETURN(
      const TensorId cap,
      lowering.Scalar(node, dtype, FloatAttr(node.attrs, ir::AttrName::kCap)));
  return lowering.EmitOutput(
      node, dtype, layout,
      {.op = "ElementWiseMultiply", .inputs = {tanh, cap}});
}

}  // namespace hexllm::htp

// silu: Sigmoid and a product, which the vendor's compiler makes one op.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {
namespace {

// Codes of 0 to 1.
ir::Encoding Probability(DType dtype) {
  if (dtype == DType::kF16) return {.dtype = dtype};
  const float steps = dtype == DType::kU8 ? 256.0f : 65536.0f;
  return {.dtype = dtype, .scales = {1 / steps}, .zero_points = {0}};
}

}  // namespace

Status EmitSilu(GraphLowering& lowering, const ir::Node& node) {
  const DType dtype = lowering.ArithmeticOf(node);
  const Layout layout = lowering.AnyLayout(node, 0);
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, dtype, layout));
  HX_ASSIGN_OR_RETURN(const TensorId gate,
                      lowering.EmitInner(node,
                                         {.suffix = ".sigmoid",
                                          .dims = layout.dims,
                                          .encoding = Probability(dtype)},
                                         {.op = "Sigmoid", .inputs = {x}}));
  return lowering.EmitOutput(
      node, dtype, layout, {.op = "ElementWiseMultiply", .inputs = {x, gate}});
}

}  // namespace hexllm::htp

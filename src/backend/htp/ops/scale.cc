// scale: ElementWiseMultiply by a constant, or the factor of its input
// (lower_factors.h) and at most a Convert.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitScale(GraphLowering& lowering, const ir::Node& node) {
  const DType dtype = lowering.ArithmeticOf(node);
  const Layout layout = lowering.AnyLayout(node, 0);
  const double factor = lowering.factors().Remaining(node);
  if (factor == 1) return EmitConvert(lowering, node);
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, dtype, layout));
  HX_ASSIGN_OR_RETURN(const TensorId scale,
                      lowering.Scalar(node, dtype, factor));
  return lowering.EmitOutput(
      node, dtype, layout, {.op = "ElementWiseMultiply", .inputs = {x, scale}});
}

}  // namespace hexllm::htp

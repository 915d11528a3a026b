// mul: ElementWiseMultiply.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitMul(GraphLowering& lowering, const ir::Node& node) {
  const DType dtype = lowering.ArithmeticOf(node);
  const Layout layout = lowering.AnyLayout(node, 0);
  HX_ASSIGN_OR_RETURN(const TensorId a, lowering.Input(node, 0, dtype, layout));
  HX_ASSIGN_OR_RETURN(const TensorId b, lowering.Input(node, 1, dtype, layout));
  return lowering.EmitOutput(node, dtype, layout,
                             {.op = "ElementWiseMultiply", .inputs = {a, b}});
}

}  // namespace hexllm::htp

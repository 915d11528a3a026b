// gelu: Gelu, for both forms. The HTP has one, which is 9 of 65536 codes away
// from either; they are 0.0005 apart.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitGelu(GraphLowering& lowering, const ir::Node& node) {
  const DType dtype = lowering.ArithmeticOf(node);
  const Layout layout = lowering.AnyLayout(node, 0);
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, dtype, layout));
  return lowering.EmitOutput(node, dtype, layout,
                             {.op = "Gelu", .inputs = {x}});
}

}  // namespace hexllm::htp

// softmax: Softmax over the last axis.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitSoftmax(GraphLowering& lowering, const ir::Node& node) {
  const DType dtype = lowering.ArithmeticOf(node);
  const Layout layout = lowering.RowLayout(node, 0);
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, dtype, layout));
  return lowering.EmitOutput(
      node, dtype, layout,
      {.op = "Softmax",
       .inputs = {x},
       .params = {{"axis", static_cast<uint32_t>(layout.dims.size() - 1)},
                  {"beta", 1.0f}}});
}

}  // namespace hexllm::htp

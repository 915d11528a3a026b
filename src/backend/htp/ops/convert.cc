// convert: Convert, or nothing when input and output have one encoding.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitConvert(GraphLowering& lowering, const ir::Node& node) {
  const ir::ValueId input = node.inputs[0];
  if (lowering.EncodingOf(input) == lowering.EncodingOf(node.output)) {
    return lowering.AliasReshape(node, 0);
  }
  const Layout layout = lowering.AnyLayout(node, 0);
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, layout));
  return lowering.EmitOutput(node, lowering.EncodingOf(node.output).dtype,
                             layout, {.op = "Convert", .inputs = {x}});
}

}  // namespace hexllm::htp

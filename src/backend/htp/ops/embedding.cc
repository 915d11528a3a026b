// embedding: a Gather from a table in the codes of the output.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitEmbedding(GraphLowering& lowering, const ir::Node& node) {
  HX_ASSIGN_OR_RETURN(const ir::Constant* table, lowering.ConstantOf(node, 1));
  const int64_t tokens = lowering.shape(node.inputs[0])[0];
  HX_ASSIGN_OR_RETURN(const TensorId token,
                      lowering.Input(node, 0, {.dims = {1, 1, tokens}}));
  const ir::Encoding encoding = lowering.EncodingOf(node.output);
  HX_ASSIGN_OR_RETURN(StaticTensor rows, MakeTable(*table, encoding));
  HX_ASSIGN_OR_RETURN(const TensorId data,
                      lowering.Static(node, ".table", std::move(rows)));
  return lowering.EmitOutput(node, encoding.dtype,
                             {.dims = Rank4(lowering.shape(node.output))},
                             {.op = "Gather",
                              .inputs = {data, token},
                              .params = {{"axis", int32_t{0}}}});
}

}  // namespace hexllm::htp

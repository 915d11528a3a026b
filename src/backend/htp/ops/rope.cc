// rope: RotaryEmbedding of [1,H,T,D].
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitRope(GraphLowering& lowering, const ir::Node& node) {
  if (!lowering.session().HasOp("RotaryEmbedding")) {
    return lowering.Unsupported(
        node,
        "this QNN library has no RotaryEmbedding; use QAIRT 2.51 or "
        "later");
  }
  const Shape& x_shape = lowering.shape(node.inputs[0]);      // [T,H,D]
  const Shape& table_shape = lowering.shape(node.inputs[1]);  // [T,R/2]
  // The op is there in u16 and f16.
  const DType dtype = WiderType(DType::kU16, lowering.ArithmeticOf(node));
  const Layout heads{.perm = {1, 0, 2},
                     .dims = {1, x_shape[1], x_shape[0], x_shape[2]}};
  const Layout table{.dims = {1, table_shape[0], table_shape[1]}};
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, dtype, heads));
  HX_ASSIGN_OR_RETURN(const TensorId cos,
                      lowering.Input(node, 1, dtype, table));
  HX_ASSIGN_OR_RETURN(const TensorId sin,
                      lowering.Input(node, 2, dtype, table));
  return lowering.EmitOutput(
      node, dtype, heads,
      {.op = "RotaryEmbedding",
       .inputs = {x, cos, sin},
       .params = {{"interleaved", false},
                  {"rotary_embedding_dim",
                   static_cast<uint32_t>(2 * table_shape[1])}}});
}

}  // namespace hexllm::htp

// concat: Concat; nothing when one side is empty.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitConcat(GraphLowering& lowering, const ir::Node& node) {
  const auto axis =
      static_cast<size_t>(IntAttr(node.attrs, ir::AttrName::kAxis));
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (lowering.shape(node.inputs[i])[axis] == 0) {
      return lowering.AliasReshape(node, 1 - i);
    }
  }
  HX_RETURN_IF_ERROR(lowering.CheckSameEncoding(node, 0));
  HX_RETURN_IF_ERROR(lowering.CheckSameEncoding(node, 1));
  const DType dtype = lowering.EncodingOf(node.output).dtype;
  HX_ASSIGN_OR_RETURN(const TensorId a, lowering.Input(node, 0, dtype));
  HX_ASSIGN_OR_RETURN(const TensorId b, lowering.Input(node, 1, dtype));
  const Shape& shape = lowering.shape(node.output);
  const Shape dims = Rank4(shape);
  return lowering.EmitOutput(
      node, dtype, {.dims = dims},
      {.op = "Concat",
       .inputs = {a, b},
       .params = {{"axis",
                   static_cast<uint32_t>(dims.size() - shape.size() + axis)}}});
}

}  // namespace hexllm::htp

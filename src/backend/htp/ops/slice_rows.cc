// slice_rows: StridedSlice along the first axis; nothing for all rows.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitSliceRows(GraphLowering& lowering, const ir::Node& node) {
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const int64_t begin = IntAttr(node.attrs, ir::AttrName::kBegin);
  const int64_t count = IntAttr(node.attrs, ir::AttrName::kCount);
  if (count == x_shape[0]) return lowering.AliasReshape(node, 0);
  HX_RETURN_IF_ERROR(lowering.CheckSameEncoding(node, 0));
  const DType dtype = lowering.EncodingOf(node.output).dtype;
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, dtype));
  const Shape dims = Rank4(x_shape);
  ArrayParam<int32_t> ranges{.shape = {static_cast<uint32_t>(dims.size()), 3},
                             .values = {}};
  const size_t sliced = dims.size() - x_shape.size();
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t first = i == sliced ? begin : 0;
    const int64_t end = i == sliced ? begin + count : dims[i];
    for (const int64_t number : {first, end, int64_t{1}}) {
      ranges.values.push_back(static_cast<int32_t>(number));
    }
  }
  return lowering.EmitOutput(node, dtype,
                             {.dims = Rank4(lowering.shape(node.output))},
                             {.op = "StridedSlice",
                              .inputs = {x},
                              .params = {{"ranges", std::move(ranges)}}});
}

}  // namespace hexllm::htp

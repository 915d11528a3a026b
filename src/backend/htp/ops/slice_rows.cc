// slice_rows: StridedSlice along the first axis; nothing for all rows. Rows
// need not be whole in memory: a head of [H,T,D] is cut out of [1,1,T,H*D].
#include <numeric>
#include <optional>

#include "backend/htp/ops/ops.h"

namespace hexllm::htp {
namespace {

// A tensor whose axis `axis` holds the rows, `length` elements each.
struct RowAxis {
  size_t axis;
  int64_t length;
};

std::optional<RowAxis> FindRows(const Shape& shape, const Layout& layout) {
  Shape order = layout.perm;
  if (order.empty()) {
    order.resize(shape.size());
    std::iota(order.begin(), order.end(), int64_t{0});
  }
  int64_t inner = 1;  // elements of a row that lie together
  for (size_t i = order.size(); order[--i] != 0;)
    inner *= shape[static_cast<size_t>(order[i])];
  int64_t behind = 1;  // elements of the axes behind
  for (size_t axis = layout.dims.size(); axis-- > 0;) {
    if (inner % behind != 0) return std::nullopt;
    if (layout.dims[axis] * behind == shape[0] * inner)
      return RowAxis{.axis = axis, .length = inner / behind};
    behind *= layout.dims[axis];
  }
  return std::nullopt;
}

}  // namespace

Status EmitSliceRows(GraphLowering& lowering, const ir::Node& node) {
  const Shape& shape = lowering.shape(node.inputs[0]);
  const int64_t begin = IntAttr(node.attrs, ir::AttrName::kBegin);
  const int64_t count = IntAttr(node.attrs, ir::AttrName::kCount);
  if (count == shape[0]) return lowering.AliasReshape(node, 0);
  HX_RETURN_IF_ERROR(lowering.CheckSameEncoding(node, 0));
  Layout layout = lowering.AnyLayout(node, 0);
  std::optional<RowAxis> rows = FindRows(shape, layout);
  if (!rows) {
    layout = {.dims = Rank4(shape)};
    rows = FindRows(shape, layout);
  }
  const auto& [axis, length] = *rows;
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, layout));
  ArrayParam<int32_t> ranges =
      SliceRanges(layout.dims, axis, begin * length, (begin + count) * length);
  layout.dims[axis] = count * length;
  return lowering.EmitOutput(node, lowering.EncodingOf(node.output).dtype,
                             layout,
                             {.op = "StridedSlice",
                              .inputs = {x},
                              .params = {{"ranges", std::move(ranges)}}});
}

}  // namespace hexllm::htp

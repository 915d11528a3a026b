// convert: Convert, or nothing when input and output have one encoding.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {
namespace {

// Between halves and codes, one row [1,1,1,K] is converted as [1,1,K/32,32]:
// rows are stored in tiles, which one row leaves mostly empty. By the estimate,
// a layer of SmolLM2 135M with a residual stream of halves decodes in 62 us so
// on SM8750, else in 107. Not so to u8 where K is no multiple of 128: what lies
// behind the last whole 128 would be rounded down.
Layout LayoutOf(const GraphLowering& lowering, const ir::Node& node) {
  constexpr int64_t kTile = 32;
  constexpr int64_t kWholeBytes = 128;
  Layout layout = lowering.AnyLayout(node, 0);
  const int64_t width = layout.dims.back();
  const bool row = NumElements(layout.dims) == width && width % kTile == 0;
  if (!row || IsHalf(lowering.EncodingOf(node.inputs[0])) ==
                  IsHalf(lowering.EncodingOf(node.output))) {
    return layout;
  }
  if (lowering.EncodingOf(node.output).dtype == DType::kU8 &&
      width % kWholeBytes != 0) {
    return layout;
  }
  layout.dims = {1, 1, width / kTile, kTile};
  return layout;
}

}  // namespace

Status EmitConvert(GraphLowering& lowering, const ir::Node& node) {
  const ir::ValueId input = node.inputs[0];
  if (lowering.EncodingOf(input) == lowering.EncodingOf(node.output)) {
    return lowering.AliasReshape(node, 0);
  }
  const Layout layout = LayoutOf(lowering, node);
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, layout));
  return lowering.EmitOutput(node, lowering.EncodingOf(node.output).dtype,
                             layout, {.op = "Convert", .inputs = {x}});
}

}  // namespace hexllm::htp

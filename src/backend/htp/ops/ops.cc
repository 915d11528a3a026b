#include "backend/htp/ops/ops.h"

#include <iterator>

#include "base/check.h"

namespace hexllm::htp {
namespace {

using ir::OpKind;

Status EmitFused(GraphLowering& lowering, const ir::Node& node) {
  return lowering.Unsupported(
      node,
      "the HTP has no form of this op; run the passes of target htp first");
}

// One row per row of ir/ops.def, in its order.
struct EmitRow {
  OpKind op;
  Status (*emit)(GraphLowering&, const ir::Node&);
};
constexpr EmitRow kEmit[] = {
    {OpKind::kEmbedding, EmitEmbedding},
    {OpKind::kLinear, EmitLinear},
    {OpKind::kRmsNorm, EmitRmsNorm},
    {OpKind::kRope, EmitRope},
    {OpKind::kAttention, EmitFused},
    {OpKind::kReshape, EmitReshape},
    {OpKind::kTranspose, EmitTranspose},
    {OpKind::kSliceRows, EmitSliceRows},
    {OpKind::kAdd, EmitAdd},
    {OpKind::kMul, EmitMul},
    {OpKind::kScale, EmitScale},
    {OpKind::kSilu, EmitSilu},
    {OpKind::kGelu, EmitGelu},
    {OpKind::kSoftcap, EmitSoftcap},
    {OpKind::kGatedMul, EmitFused},
    {OpKind::kLinearAdd, EmitFused},
    {OpKind::kMatMul, EmitMatMul},
    {OpKind::kConcat, EmitConcat},
    {OpKind::kSoftmax, EmitSoftmax},
    {OpKind::kConvert, EmitConvert},
    {OpKind::kLayerNorm, EmitLayerNorm},
};

}  // namespace

Status RequireFor(const GraphLowering& lowering, const ir::Node& node,
                  Feature feature) {
  const Status can = RequireFeature(lowering.session().soc(), feature);
  return can.ok() ? can : lowering.Unsupported(node, can.error().message);
}

Status EmitNode(GraphLowering& lowering, const ir::Node& node) {
  const auto index = static_cast<size_t>(node.op);
  HX_CHECK(index < std::size(kEmit) && kEmit[index].op == node.op);
  return kEmit[index].emit(lowering, node);
}

// [start, end, step] of each axis.
ArrayParam<int32_t> SliceRanges(const Shape& dims, size_t axis, int64_t begin,
                                int64_t end) {
  ArrayParam<int32_t> ranges{.shape = {static_cast<uint32_t>(dims.size()), 3},
                             .values = {}};
  for (size_t i = 0; i < dims.size(); ++i) {
    for (const int64_t number :
         {i == axis ? begin : 0, i == axis ? end : dims[i], int64_t{1}}) {
      ranges.values.push_back(static_cast<int32_t>(number));
    }
  }
  return ranges;
}

std::vector<NodeParam> NormParams(const ir::Node& node, const Layout& layout) {
  const auto eps =
      static_cast<float>(FloatAttr(node.attrs, ir::AttrName::kEps));
  const auto last = static_cast<uint32_t>(layout.dims.size() - 1);
  return {{"epsilon", eps},
          {"axes", ArrayParam<uint32_t>{.shape = {1}, .values = {last}}}};
}

}  // namespace hexllm::htp

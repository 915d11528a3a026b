// matmul: MatMul of [1,B,M,K] and [1,B,K,N]. Its scale is in the tensors before
// it (lower_factors.h), or a product with a constant follows. Of two u16 inputs
// the second must be a grid around 0: others are converted, which at 16 bits of
// cache is a pass over all of it in each step.
#include <algorithm>
#include <cstdint>

#include "backend/htp/ops/ops.h"

namespace hexllm::htp {
namespace {

constexpr int32_t kMiddle = 32768;

// The grid around 0 that holds all numbers of a u16 grid.
ir::Encoding Symmetric(const ir::Encoding& encoding) {
  const int32_t zero_point = ZeroPointOf(encoding);
  const int32_t below = zero_point;
  const int32_t above = UINT16_MAX - zero_point;
  const float steps = static_cast<float>(std::max(below, above)) /
                      static_cast<float>(kMiddle - 1);
  return {.dtype = DType::kU16,
          .scales = {encoding.scales[0] * steps},
          .zero_points = {kMiddle}};
}

// b as MatMul takes it beside `dtype`: f16, u8, or u16 around 0. 16 x 8 bits is
// as exact as 16 x 16, and there on every generation.
Result<TensorId> SecondInput(GraphLowering& lowering, const ir::Node& node,
                             DType dtype) {
  if (dtype == DType::kF16) return lowering.Input(node, 1, dtype);
  const ir::Encoding encoding = lowering.EncodingOf(node.inputs[1]);
  HX_ASSIGN_OR_RETURN(const TensorId b,
                      lowering.Input(node, 1, encoding.dtype));
  if (encoding.dtype == DType::kU8) return b;
  HX_RETURN_IF_ERROR(RequireFor(lowering, node, Feature::k16BitKv));
  if (ZeroPointOf(encoding) == kMiddle) return b;
  return lowering.EmitInner(node,
                            {.suffix = ".symmetric",
                             .dims = lowering.SpecOf(b).shape,
                             .encoding = Symmetric(encoding)},
                            {.op = "Convert", .inputs = {b}});
}

}  // namespace

Status EmitMatMul(GraphLowering& lowering, const ir::Node& node) {
  const DType dtype = lowering.ArithmeticOf(node);
  HX_ASSIGN_OR_RETURN(const TensorId a, lowering.Input(node, 0, dtype));
  HX_ASSIGN_OR_RETURN(const TensorId b, SecondInput(lowering, node, dtype));
  NodeDraft product{
      .op = "MatMul",
      .inputs = {a, b},
      .params = {{"transpose_in0", false}, {"transpose_in1", false}}};
  const Layout layout{.dims = Rank4(lowering.shape(node.output))};
  const double factor = lowering.factors().Remaining(node);
  if (factor == 1) {
    return lowering.EmitOutput(node, dtype, layout, std::move(product));
  }
  ir::Encoding encoding =
      ScaledBy(1 / factor, WidenedTo(dtype, lowering.EncodingOf(node.output)));
  HX_ASSIGN_OR_RETURN(const TensorId inner,
                      lowering.EmitInner(node,
                                         {.suffix = ".unscaled",
                                          .dims = layout.dims,
                                          .encoding = std::move(encoding)},
                                         std::move(product)));
  HX_ASSIGN_OR_RETURN(const TensorId scale,
                      lowering.Scalar(node, dtype, factor));
  return lowering.EmitOutput(
      node, dtype, layout,
      {.op = "ElementWiseMultiply", .inputs = {inner, scale}});
}

}  // namespace hexllm::htp

// layer_norm: LayerNorm over the last axis. The library takes a u16 weight
// whose zero is the middle code, and an i32 bias.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitLayerNorm(GraphLowering& lowering, const ir::Node& node) {
  const DType dtype = lowering.ArithmeticOf(node);
  if (dtype == DType::kU16)
    HX_RETURN_IF_ERROR(RequireFor(lowering, node, Feature::k16BitLayerNorm));
  const Layout layout = lowering.RowLayout(node, 0);
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, dtype, layout));
  HX_ASSIGN_OR_RETURN(const ir::Constant* w, lowering.ConstantOf(node, 1));
  HX_ASSIGN_OR_RETURN(const ir::Constant* bias, lowering.ConstantOf(node, 2));
  HX_ASSIGN_OR_RETURN(
      StaticTensor scale,
      MakeGamma(*w, {.dtype = dtype, .symmetric = dtype == DType::kU16}));
  HX_ASSIGN_OR_RETURN(StaticTensor shift, MakeBeta(*bias, dtype));
  HX_ASSIGN_OR_RETURN(const TensorId gamma,
                      lowering.Static(node, ".weight", std::move(scale)));
  HX_ASSIGN_OR_RETURN(const TensorId beta,
                      lowering.Static(node, ".bias", std::move(shift)));
  return lowering.EmitOutput(node, dtype, layout,
                             {.op = "LayerNorm",
                              .inputs = {x, gamma, beta},
                              .params = NormParams(node, layout)});
}

}  // namespace hexllm::htp

// rms_norm: RmsNorm over the last axis.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitRmsNorm(GraphLowering& lowering, const ir::Node& node) {
  const DType dtype = lowering.ArithmeticOf(node);
  const Layout layout = lowering.RowLayout(node, 0);
  HX_ASSIGN_OR_RETURN(const TensorId x, lowering.Input(node, 0, dtype, layout));
  HX_ASSIGN_OR_RETURN(const ir::Constant* w, lowering.ConstantOf(node, 1));
  HX_ASSIGN_OR_RETURN(
      StaticTensor made,
      MakeGamma(*w,
                {.dtype = dtype,
                 .offset = FloatAttr(node.attrs, ir::AttrName::kWeightOffset),
                 .factor = lowering.FactorOf(node.output)}));
  HX_ASSIGN_OR_RETURN(const TensorId gamma,
                      lowering.Static(node, ".weight", std::move(made)));
  return lowering.EmitOutput(node, dtype, layout,
                             {.op = "RmsNorm",
                              .inputs = {x, gamma},
                              .params = NormParams(node, layout)});
}

}  // namespace hexllm::htp

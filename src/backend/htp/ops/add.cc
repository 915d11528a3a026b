// add: ElementWiseAdd. A smaller b is broadcast. A mask [T,C] added to scores
// [G,R,T,C] that lie in memory as [1,G,R*T,C] is repeated to [1,1,R*T,C], once
// for all layers: the scores then need no reshape, which at many tokens costs
// more than the sum.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {
namespace {

// [1,1,R*T,C] and [T,C]: R; 0 when rows do not fall on rows.
int64_t Repetitions(const Layout& a, const Shape& b) {
  if (!a.perm.empty() || b.size() != 2 || a.dims.size() != 4) return 0;
  if (a.dims[3] != b[1] || a.dims[2] % b[0] != 0) return 0;
  return a.dims[2] / b[0];
}

Status EmitBroadcast(GraphLowering& lowering, const ir::Node& node) {
  const DType dtype = lowering.ArithmeticOf(node);
  const Shape& b_shape = lowering.shape(node.inputs[1]);
  Layout layout = lowering.OrderedLayout(node, 0);
  const int64_t times = Repetitions(layout, b_shape);
  if (times == 0) layout = {.dims = Rank4(lowering.shape(node.inputs[0]))};
  HX_ASSIGN_OR_RETURN(const TensorId a, lowering.Input(node, 0, dtype, layout));
  HX_ASSIGN_OR_RETURN(TensorId b, lowering.Input(node, 1, dtype));
  if (times > 1) {
    HX_ASSIGN_OR_RETURN(b, lowering.Repeated(b, times));
  }
  return lowering.EmitOutput(node, dtype, layout,
                             {.op = "ElementWiseAdd", .inputs = {a, b}});
}

}  // namespace

Status EmitAdd(GraphLowering& lowering, const ir::Node& node) {
  if (lowering.shape(node.inputs[0]) != lowering.shape(node.inputs[1])) {
    return EmitBroadcast(lowering, node);
  }
  const DType dtype = lowering.ArithmeticOf(node);
  const Layout layout = lowering.AnyLayout(node, 0);
  HX_ASSIGN_OR_RETURN(const TensorId a, lowering.Input(node, 0, dtype, layout));
  HX_ASSIGN_OR_RETURN(const TensorId b, lowering.Input(node, 1, dtype, layout));
  return lowering.EmitOutput(node, dtype, layout,
                             {.op = "ElementWiseAdd", .inputs = {a, b}});
}

}  // namespace hexllm::htp

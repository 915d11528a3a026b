#include "passes/fold_scale.h"

#include <cmath>

#include "passes/rewrite.h"

namespace hexllm {
namespace {

double Factor(const ir::Node& node) {
  return ir::FloatAttr(node.attrs, ir::AttrName::kFactor);
}

// scale(scale(x, a), b) -> scale(x, a * b); the inner scale stays for its other
// readers.
void MergeWithInner(const ir::Graph& graph, ir::Node& outer) {
  const ir::Node* inner =
      ProducerOfKind(graph, outer.inputs[0], ir::OpKind::kScale);
  if (inner == nullptr || graph[inner->output].encoding) return;
  const double factor = Factor(*inner) * Factor(outer);
  if (!std::isfinite(factor)) return;
  outer.attrs = {{ir::AttrName::kFactor, factor}};
  outer.inputs = inner->inputs;
}

}  // namespace

Status FoldScale(ir::Module& module) {
  for (ir::Graph& graph : module.graphs) {
    for (ir::Node& node : graph.nodes) {
      if (node.op != ir::OpKind::kScale) continue;
      MergeWithInner(graph, node);
      if (Factor(node) == 1.0) ForwardValue(graph, node, node.inputs[0]);
    }
    RemoveDead(graph);
  }
  return OkStatus();
}

}  // namespace hexllm

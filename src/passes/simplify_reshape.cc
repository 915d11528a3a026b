#include "passes/simplify_reshape.h"

#include "ir/ops/transpose.h"
#include "passes/rewrite.h"

namespace hexllm {
namespace {

using ir::AttrName;
using ir::OpKind;

const std::vector<int64_t>& Perm(const ir::Node& node) {
  return ir::IntsAttr(node.attrs, AttrName::kPerm);
}

// transpose(transpose(x, a), b) -> transpose(x, a[b]).
void JoinTransposes(const ir::Graph& graph, ir::Node& node) {
  const ir::Node* inner =
      ProducerOfKind(graph, node.inputs[0], OpKind::kTranspose);
  if (inner == nullptr || graph[inner->output].encoding) return;
  std::vector<int64_t> perm;
  for (const int64_t axis : Perm(node))
    perm.push_back(Perm(*inner)[static_cast<size_t>(axis)]);
  node.attrs = {{AttrName::kPerm, std::move(perm)}};
  node.inputs = inner->inputs;
}

// A transpose that moves only axes of size 1 -> reshape.
void TransposeToReshape(const ir::Graph& graph, ir::Node& node) {
  if (!ir::KeepsOrder(graph.type(node.inputs[0]).shape, Perm(node))) return;
  node.op = OpKind::kReshape;
  node.attrs = {{AttrName::kShape, graph.type(node.output).shape}};
}

// reshape(reshape(x)) -> reshape(x).
void JoinReshapes(const ir::Graph& graph, ir::Node& node) {
  const ir::Node* inner =
      ProducerOfKind(graph, node.inputs[0], OpKind::kReshape);
  if (inner == nullptr || graph[inner->output].encoding) return;
  node.inputs = inner->inputs;
}

void Simplify(ir::Graph& graph, ir::Node& node) {
  if (node.op == OpKind::kTranspose) {
    JoinTransposes(graph, node);
    TransposeToReshape(graph, node);
  }
  if (node.op != OpKind::kReshape) return;
  JoinReshapes(graph, node);
  if (graph.type(node.inputs[0]) == graph.type(node.output))
    ForwardValue(graph, node, node.inputs[0]);
}

}  // namespace

Status SimplifyReshape(ir::Module& module) {
  for (ir::Graph& graph : module.graphs) {
    // In order: what a node reads is already simple.
    for (ir::Node& node : graph.nodes) Simplify(graph, node);
    RemoveDead(graph);
  }
  return OkStatus();
}

}  // namespace hexllm

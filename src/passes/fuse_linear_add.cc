#include "passes/fuse_linear_add.h"

#include <utility>

#include "passes/rewrite.h"

namespace hexllm {
namespace {

// Rewrites `add` when its input `side` is a projection that nothing else reads.
bool Fuse(const ir::Graph& graph, const std::vector<int>& uses, ir::Node& add,
          size_t side) {
  const ir::Node* linear =
      ProducerOfKind(graph, add.inputs[side], ir::OpKind::kLinear);
  if (linear == nullptr || !IsInner(graph, uses, linear->output)) return false;
  std::vector<ir::ValueId> inputs = {linear->inputs[0], linear->inputs[1],
                                     add.inputs[1 - side]};
  if (linear->inputs.size() > 2) inputs.push_back(linear->inputs[2]);
  add = {.op = ir::OpKind::kLinearAdd,
         .inputs = std::move(inputs),
         .output = add.output,
         .attrs = {}};
  return true;
}

bool HasOneShape(const ir::Graph& graph, const ir::Node& add) {
  return graph.type(add.inputs[0]) == graph.type(add.inputs[1]);
}

// The input of `add` that is made later: its operands are the likelier ones to
// be in cache still.
size_t LaterSide(const ir::Graph& graph, const ir::Node& add) {
  return graph[add.inputs[1]].producer > graph[add.inputs[0]].producer ? 1 : 0;
}

}  // namespace

Status FuseLinearAdd(ir::Module& module) {
  for (ir::Graph& graph : module.graphs) {
    const std::vector<int> uses = CountUses(graph);
    for (ir::Node& node : graph.nodes) {
      if (node.op != ir::OpKind::kAdd || !HasOneShape(graph, node)) continue;
      const size_t later = LaterSide(graph, node);
      if (!Fuse(graph, uses, node, later)) Fuse(graph, uses, node, 1 - later);
    }
    RemoveDead(graph);
  }
  return OkStatus();
}

}  // namespace hexllm

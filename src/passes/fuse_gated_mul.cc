#include "passes/fuse_gated_mul.h"

#include <optional>

#include "passes/rewrite.h"

namespace hexllm {
namespace {

// The `activation` attribute that stands for an activation node, if it is one.
std::optional<int64_t> ActivationOf(const ir::Node& node) {
  if (node.op == ir::OpKind::kSilu) return 0;
  if (node.op == ir::OpKind::kGelu)
    return ir::IntAttr(node.attrs, ir::AttrName::kApproximate) == 1 ? 1 : 2;
  return std::nullopt;
}

// Rewrites `mul` when its input `side` is an activation that nothing else
// reads.
bool Fuse(const ir::Graph& graph, const std::vector<int>& uses, ir::Node& mul,
          size_t side) {
  const ir::Node* gate = Producer(graph, mul.inputs[side]);
  if (gate == nullptr || !IsInner(graph, uses, gate->output)) return false;
  const auto activation = ActivationOf(*gate);
  if (!activation) return false;
  mul = {.op = ir::OpKind::kGatedMul,
         .inputs = {gate->inputs[0], mul.inputs[1 - side]},
         .output = mul.output,
         .attrs = {{ir::AttrName::kActivation, *activation}}};
  return true;
}

}  // namespace

Status FuseGatedMul(ir::Module& module) {
  for (ir::Graph& graph : module.graphs) {
    const std::vector<int> uses = CountUses(graph);
    for (ir::Node& node : graph.nodes) {
      if (node.op != ir::OpKind::kMul) continue;
      if (!Fuse(graph, uses, node, 0)) Fuse(graph, uses, node, 1);
    }
    RemoveDead(graph);
  }
  return OkStatus();
}

}  // namespace hexllm

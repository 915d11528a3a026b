#include "quant/graph_facts.h"

#include <algorithm>

namespace hexllm::quant {
namespace {

std::set<ir::ValueId> MaskInputs(const ir::Graph& graph) {
  std::set<ir::ValueId> masks;
  for (const ir::GraphIo& io : graph.inputs)
    if (io.role.kind == RoleKind::kMask) masks.insert(io.value);
  return masks;
}

}  // namespace

bool IsDataMovement(ir::OpKind op) {
  return op == ir::OpKind::kReshape || op == ir::OpKind::kTranspose ||
         op == ir::OpKind::kSliceRows || op == ir::OpKind::kConcat;
}

ir::ValueId SourceOf(const ir::Graph& graph, ir::ValueId value) {
  while (graph[value].producer.valid()) {
    const ir::Node& node = graph[graph[value].producer];
    if (!IsDataMovement(node.op) || node.inputs.size() != 1) break;
    value = node.inputs[0];
  }
  return value;
}

GraphFacts::GraphFacts(const ir::Graph& graph) {
  const std::set<ir::ValueId> masks = MaskInputs(graph);
  for (const ir::Node& node : graph.nodes) {
    if (node.op != ir::OpKind::kAdd) continue;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (!masks.contains(node.inputs[side])) continue;
      const ir::ValueId scores = SourceOf(graph, node.inputs[1 - side]);
      by_output_[node.output] = {node.output, scores, node.inputs[side]};
      output_by_scores_[scores] = node.output;
    }
  }
  for (const ir::GraphIo& io : graph.outputs) {
    const bool is_k = io.role.kind == RoleKind::kKOut;
    if (!is_k && io.role.kind != RoleKind::kVOut) continue;
    const CacheUse use = {is_k ? RoleKind::kKIn : RoleKind::kVIn,
                          io.role.index};
    const ir::ValueId stored = SourceOf(graph, io.value);
    caches_[stored] = use;
    const ir::NodeId node = graph[stored].producer;
    if (node.valid() && graph[node].op == ir::OpKind::kConvert)
      converted_[SourceOf(graph, graph[node].inputs[0])] = use;
  }
  FindResidual(graph);
}

void GraphFacts::FindResidual(const ir::Graph& graph) {
  for (const ir::GraphIo& io : graph.inputs) {
    if (io.role.kind == RoleKind::kEmbedding ||
        io.role.kind == RoleKind::kHiddenIn) {
      residual_.insert(io.value);
    }
  }
  for (const ir::Node& node : graph.nodes) {
    const bool goes_on = node.op == ir::OpKind::kAdd ||
                         node.op == ir::OpKind::kScale ||
                         IsDataMovement(node.op);
    const bool reads =
        std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&](ir::ValueId id) { return residual_.contains(id); });
    if (node.op == ir::OpKind::kEmbedding || (goes_on && reads))
      residual_.insert(node.output);
  }
}

ir::ValueId GraphFacts::TermOf(const ir::Node& node) const {
  if (node.op != ir::OpKind::kAdd || !IsResidual(node.output)) return {};
  const bool first = IsResidual(node.inputs[0]);
  if (first == IsResidual(node.inputs[1])) return {};
  return node.inputs[first ? 1 : 0];
}

const MaskedAdd* GraphFacts::FindByOutput(ir::ValueId value) const {
  const auto found = by_output_.find(value);
  return found == by_output_.end() ? nullptr : &found->second;
}

const MaskedAdd* GraphFacts::FindByScores(ir::ValueId value) const {
  const auto found = output_by_scores_.find(value);
  return found == output_by_scores_.end() ? nullptr
                                          : FindByOutput(found->second);
}

const CacheUse* GraphFacts::FindConverted(ir::ValueId value) const {
  const auto found = converted_.find(value);
  return found == converted_.end() ? nullptr : &found->second;
}

const CacheUse* GraphFacts::FindCache(ir::ValueId value) const {
  const auto found = caches_.find(value);
  return found == caches_.end() ? nullptr : &found->second;
}

}  // namespace hexllm::quant

#include "quant/residual.h"

#include <algorithm>
#include <map>
#include <vector>

#include "quant/graph_facts.h"

namespace hexllm::quant {
namespace {

const Range* FindRange(const Ranges& ranges, const std::string& name) {
  const auto found = ranges.find(name);
  return found == ranges.end() ? nullptr : &found->second.range;
}

// Widths of the ranges of linears that are terms of the stream, by name.
std::map<std::string, float> TermWidths(const ir::Module& module,
                                        const Ranges& ranges) {
  std::map<std::string, float> widths;
  for (const ir::Graph& graph : module.graphs) {
    const GraphFacts facts(graph);
    for (const ir::Node& node : graph.nodes) {
      const ir::ValueId added = facts.TermOf(node);
      if (!added.valid()) continue;
      const ir::Value& term = graph[SourceOf(graph, added)];
      if (!term.producer.valid() ||
          graph[term.producer].op != ir::OpKind::kLinear) {
        continue;
      }
      if (const Range* range = FindRange(ranges, term.name))
        widths[term.name] = range->max - range->min;
    }
  }
  return widths;
}

bool MultipliesHalves(const Scheme& scheme) {
  return scheme.activations == ActivationKind::kStatic && !scheme.block &&
         scheme.weight_bits <= 8;
}

}  // namespace

Range ResidualRange(const ir::Module& module, const Ranges& ranges) {
  Range all;
  for (const ir::Graph& graph : module.graphs) {
    const GraphFacts facts(graph);
    for (const ir::Node& node : graph.nodes) {
      if (!facts.IsResidual(node.output)) continue;
      const Range* range = FindRange(ranges, graph[node.output].name);
      if (range == nullptr) continue;
      all = {std::min(all.min, range->min), std::max(all.max, range->max)};
    }
  }
  return all;
}

std::set<std::string> CoarseTerms(const ir::Module& module,
                                  const Ranges& ranges,
                                  const ResolvedRecipe& recipe) {
  const std::map<std::string, float> widths = TermWidths(module, ranges);
  std::vector<float> sorted;
  for (const auto& [name, width] : widths) sorted.push_back(width);
  std::sort(sorted.begin(), sorted.end());
  std::set<std::string> coarse;
  for (const auto& [name, width] : widths) {
    if (width > kCoarseSteps * sorted[sorted.size() / 2] &&
        MultipliesHalves(*recipe.For(name).scheme)) {
      coarse.insert(name);
    }
  }
  return coarse;
}

}  // namespace hexllm::quant

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

// Calls visit(graph, linear) for the linears that are terms of the stream.
template <typename Visit>
void ForEachTerm(const ir::Module& module, Visit visit) {
  for (const ir::Graph& graph : module.graphs) {
    const GraphFacts facts(graph);
    for (const ir::Node& node : graph.nodes) {
      const ir::ValueId added = facts.TermOf(node);
      if (!added.valid()) continue;
      const ir::NodeId producer = graph[SourceOf(graph, added)].producer;
      if (producer.valid() && graph[producer].op == ir::OpKind::kLinear)
        visit(graph, graph[producer]);
    }
  }
}

bool MultipliesHalves(const Scheme& scheme) {
  return scheme.activations == ActivationKind::kStatic &&
         scheme.activation_bits == 16 && !scheme.block &&
         scheme.weight_bits <= 8;
}

// Width of a range by linear.
using Widths = std::map<std::string, float>;

// The linears with far more than the usual width whose scheme has products of
// halves.
std::set<std::string> FarAboveMedian(const Widths& widths,
                                     const ResolvedRecipe& recipe) {
  std::vector<float> sorted;
  for (const auto& [name, width] : widths) sorted.push_back(width);
  std::sort(sorted.begin(), sorted.end());
  std::set<std::string> coarse;
  for (const auto& [name, width] : widths) {
    if (width > kCoarseSteps * sorted[(sorted.size() - 1) / 2] &&
        MultipliesHalves(*recipe.For(name).scheme)) {
      coarse.insert(name);
    }
  }
  return coarse;
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
  Widths widths;
  ForEachTerm(module, [&](const ir::Graph& graph, const ir::Node& linear) {
    const std::string& name = graph[linear.output].name;
    if (const Range* range = FindRange(ranges, name))
      widths[name] = range->max - range->min;
  });
  return FarAboveMedian(widths, recipe);
}

std::set<std::string> CoarseInputs(const ir::Module& module,
                                   const Ranges& ranges,
                                   const ResolvedRecipe& recipe) {
  Widths widths;
  ForEachTerm(module, [&](const ir::Graph& graph, const ir::Node& linear) {
    const ir::Value& input = graph[SourceOf(graph, linear.inputs[0])];
    if (!input.producer.valid() ||
        graph[input.producer].op != ir::OpKind::kMul) {
      return;
    }
    if (const Range* range = FindRange(ranges, input.name))
      widths[graph[linear.output].name] = range->max - range->min;
  });
  return FarAboveMedian(widths, recipe);
}

}  // namespace hexllm::quant

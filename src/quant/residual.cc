#include "quant/residual.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/half.h"
#include "quant/graph_facts.h"

namespace hexllm::quant {
namespace {

const Range* FindRange(const Ranges& ranges, const std::string& name) {
  const auto found = ranges.find(name);
  return found == ranges.end() ? nullptr : &found->second.range;
}

// A linear that is a term of the stream, and the sum that takes it.
struct Term {
  const ir::Graph& graph;
  const ir::Node& linear;
  const ir::Node& sum;
  const std::string& name() const { return graph[linear.output].name; }
};

template <typename Visit>
void ForEachTerm(const ir::Module& module, Visit visit) {
  for (const ir::Graph& graph : module.graphs) {
    const GraphFacts facts(graph);
    for (const ir::Node& node : graph.nodes) {
      const ir::ValueId added = facts.TermOf(node);
      if (!added.valid()) continue;
      const ir::NodeId producer = graph[SourceOf(graph, added)].producer;
      if (producer.valid() && graph[producer].op == ir::OpKind::kLinear)
        visit(Term{graph, graph[producer], node});
    }
  }
}

bool MultipliesHalves(const Scheme& scheme) {
  return scheme.activations == ActivationKind::kStatic &&
         scheme.activation_bits == 16 && !scheme.block &&
         scheme.weight_bits <= 8;
}

// Whether all that such a sum has, and the stream around it, fits into halves.
bool FitsHalves(const Term& term, const Ranges& ranges) {
  std::vector<std::string> names = {term.graph[term.sum.output].name};
  for (const ir::ValueId input : term.sum.inputs)
    names.push_back(term.graph[SourceOf(term.graph, input)].name);
  return std::ranges::all_of(names, [&](const std::string& name) {
    const Range* range = FindRange(ranges, name);
    return range == nullptr || MostOf(*range) <= kMaxHalf;
  });
}

// Ranges of the values that are looked at, by linear.
class Candidates {
 public:
  explicit Candidates(const Ranges& ranges) : ranges_(ranges) {}

  void Add(const Term& term, const std::string& value) {
    const Range* range = FindRange(ranges_, value);
    if (range == nullptr) return;
    widths_[term.name()] = range->max - range->min;
    if (MostOf(*range) > kMaxHalf || !FitsHalves(term, ranges_))
      too_large_.insert(term.name());
  }

  // Those with far more than the usual width that halves can hold, and whose
  // scheme has products of halves.
  std::set<std::string> FarAboveMedian(const ResolvedRecipe& recipe) const {
    std::vector<float> sorted;
    for (const auto& [name, width] : widths_) sorted.push_back(width);
    std::sort(sorted.begin(), sorted.end());
    std::set<std::string> coarse;
    for (const auto& [name, width] : widths_) {
      if (width > kCoarseSteps * sorted[(sorted.size() - 1) / 2] &&
          !too_large_.contains(name) &&
          MultipliesHalves(*recipe.For(name).scheme)) {
        coarse.insert(name);
      }
    }
    return coarse;
  }

 private:
  const Ranges& ranges_;
  std::map<std::string, float> widths_;
  std::set<std::string> too_large_;
};

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
  Candidates outputs(ranges);
  ForEachTerm(module,
              [&](const Term& term) { outputs.Add(term, term.name()); });
  return outputs.FarAboveMedian(recipe);
}

std::set<std::string> CoarseInputs(const ir::Module& module,
                                   const Ranges& ranges,
                                   const ResolvedRecipe& recipe) {
  Candidates inputs(ranges);
  ForEachTerm(module, [&](const Term& term) {
    const ir::Value& input =
        term.graph[SourceOf(term.graph, term.linear.inputs[0])];
    if (input.producer.valid() &&
        term.graph[input.producer].op == ir::OpKind::kMul)
      inputs.Add(term, input.name);
  });
  return inputs.FarAboveMedian(recipe);
}

}  // namespace hexllm::quant

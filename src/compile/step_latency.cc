#include "compile/step_latency.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "models/model_source.h"

namespace hexllm {
namespace {

// The weights of the linears of `graph`, those of its layers and of its head.
struct WeightCounts {
  double layer = 0;
  double head = 0;
};

WeightCounts CountWeights(const ir::Module& module, const ir::Graph& graph) {
  WeightCounts counts;
  const ir::ValueId logits = graph.FindIo({.kind = RoleKind::kLogits});
  for (const ir::Node& node : graph.nodes) {
    if (node.op != ir::OpKind::kLinear) continue;
    const ir::ConstantId id = graph[node.inputs[1]].constant;
    const auto elements =
        static_cast<double>(ir::NumRows(module.constants[id])) *
        static_cast<double>(ir::RowElems(module.constants[id]));
    const bool is_head =
        logits.valid() && graph[node.output].name == graph[logits].name;
    (is_head ? counts.head : counts.layer) += elements;
  }
  return counts;
}

double MicrosecondsOf(const ModelEstimate& estimate) {
  double us = 0;
  for (const GraphFigures& graph : estimate.graphs) us += graph.estimate.us;
  return us;
}

}  // namespace

Result<HtpGraphs> StepLatency::Build(const quant::Recipe& recipe,
                                     int64_t shards) const {
  CompileOptions options = options_;
  options.recipe.clear();
  options.recipe_json = quant::RecipeToJson(recipe);
  options.mode = ModelMode::kKv;
  options.prefill_ar_len.reset();
  options.num_sharding = shards;
  NullProgress quiet;  // it would say the same again and again
  return BuildWithStandIns(model_path_, options, {}, quiet);
}

Result<double> StepLatency::WholeStep(const quant::Recipe& recipe,
                                      ProgressSink& progress) const {
  HX_ASSIGN_OR_RETURN(const HtpGraphs graphs,
                      Build(recipe, options_.num_sharding));
  HX_ASSIGN_OR_RETURN(
      const ModelEstimate estimate,
      EstimateGraphs(graphs.module, graphs.manifest, job_, progress));
  return MicrosecondsOf(estimate);
}

Result<StepLatency::Unit> StepLatency::OfEachWeight(
    const quant::Recipe& recipe, ProgressSink& progress) const {
  HX_ASSIGN_OR_RETURN(const models::ModelSource source,
                      models::OpenModel(model_path_, options_.source));
  HX_ASSIGN_OR_RETURN(HtpGraphs graphs, Build(recipe, source.config.layers));
  std::vector<ir::Graph>& all = graphs.module.graphs;
  HX_CHECK(all.size() == static_cast<size_t>(source.config.layers));
  if (all.size() > 2) all.erase(all.begin() + 1, all.end() - 1);
  HX_ASSIGN_OR_RETURN(
      const ModelEstimate estimate,
      EstimateGraphs(graphs.module, graphs.manifest, job_, progress));
  HX_CHECK(estimate.graphs.size() == all.size());
  const WeightCounts last = CountWeights(graphs.module, all.back());
  const double last_us = estimate.graphs.back().estimate.us;
  if (all.size() == 1) {
    const double each = last_us / (last.layer + last.head);
    return Unit{.layer_us = each, .head_us = each};
  }
  const WeightCounts first = CountWeights(graphs.module, all.front());
  Unit unit{.layer_us = estimate.graphs.front().estimate.us / first.layer};
  unit.head_us =
      std::max(0.0, last_us - unit.layer_us * last.layer) / last.head;
  return unit;
}

}  // namespace hexllm

#include "cli/search_latency.h"

#include <algorithm>
#include <utility>

#include "cli/recipe_search.h"
#include "quant/recipe_compose.h"

namespace hexllm::cli {
namespace {

// True when the compiler makes the same program of both.
bool SameProgram(const quant::LayerSettings& a, const quant::LayerSettings& b) {
  return a.scheme == b.scheme && (!a.scheme->block || a.block == b.block);
}

// The ways that are programs of their own.
std::vector<quant::LayerSettings> Programs(
    std::span<const quant::LayerSensitivity> layers) {
  std::vector<quant::LayerSettings> programs;
  for (const quant::LayerSensitivity& layer : layers) {
    for (const quant::LayerWay& way : layer.ways) {
      const auto same = [&](const quant::LayerSettings& other) {
        return SameProgram(way.settings, other);
      };
      if (std::ranges::none_of(programs, same))
        programs.push_back(way.settings);
    }
  }
  return programs;
}

// `settings` for all layers that can have them.
Result<quant::Recipe> Uniform(const quant::Recipe& base,
                              const quant::LayerSettings& settings,
                              std::span<const quant::LayerSensitivity> layers) {
  std::vector<quant::LayerWish> wishes;
  for (const quant::LayerSensitivity& layer : layers) {
    const auto way =
        std::ranges::find_if(layer.ways, [&](const quant::LayerWay& one) {
          return SameProgram(one.settings, settings);
        });
    const size_t index = way == layer.ways.end()
                             ? layer.base
                             : static_cast<size_t>(way - layer.ways.begin());
    wishes.push_back({layer.layer, layer.ways[index].settings});
  }
  return quant::ComposeRecipe(base, wishes);
}

}  // namespace

SearchLatency::SearchLatency(const SearchWish& wish)
    : wish_(wish),
      job_{.socs = {wish.options.target.soc},
           .lib_dir = wish.options.target.qnn_lib_dir,
           .scratch_parent = wish.scratch} {}

Result<double> SearchLatency::WholeStep(const quant::Recipe& recipe,
                                        ProgressSink& progress) const {
  return StepLatency(wish_.model, wish_.options, job_)
      .WholeStep(recipe, progress);
}

Result<double> SearchLatency::Fill(const quant::Recipe& base,
                                   std::vector<quant::LayerSensitivity>& layers,
                                   ProgressSink& progress) const {
  const StepLatency latency(wish_.model, wish_.options, job_);
  for (const quant::LayerSettings& program : Programs(layers)) {
    HX_ASSIGN_OR_RETURN(const quant::Recipe recipe,
                        Uniform(base, program, layers));
    HX_ASSIGN_OR_RETURN(const StepLatency::Unit unit,
                        latency.OfEachWeight(recipe, progress));
    for (quant::LayerSensitivity& layer : layers) {
      const double each = layer.is_head ? unit.head_us : unit.layer_us;
      for (quant::LayerWay& way : layer.ways) {
        if (SameProgram(way.settings, program))
          way.us = each * static_cast<double>(layer.weights);
      }
    }
  }
  HX_ASSIGN_OR_RETURN(const double whole, latency.WholeStep(base, progress));
  const double sum =
      quant::BaseAllocation(layers, quant::CostKind::kMicroseconds).cost;
  for (quant::LayerSensitivity& layer : layers) {
    for (quant::LayerWay& way : layer.ways) way.us *= whole / sum;
  }
  return whole;
}

}  // namespace hexllm::cli

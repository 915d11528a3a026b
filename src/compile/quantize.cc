#include "compile/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/half.h"
#include "base/quote.h"
#include "compile/calibrate.h"
#include "compile/rotate.h"
#include "compile/weight_tools.h"
#include "models/decoder.h"
#include "quant/assign.h"
#include "quant/residual.h"
#include "quant/weight_search.h"

namespace hexllm {
namespace {

// The linears of the module that rotate heads, whose weights no rule is for.
bool RotatesHeads(const ir::Module& module, const ir::Graph& graph,
                  const ir::Node& node) {
  if (node.op != ir::OpKind::kLinear) return false;
  const ir::ConstantId weight = graph[node.inputs[1]].constant;
  return weight.valid() &&
         module.constants[weight].name == models::kHeadRotation;
}

// How they are quantized: as wide as activations are by default. 8 bits hold
// their weights exactly.
quant::LayerSettings RotationSettings(const quant::Recipe& recipe) {
  const quant::Scheme& scheme = *recipe.defaults.scheme;
  quant::LayerSettings settings;
  settings.scheme = &scheme;
  if (scheme.activations == quant::ActivationKind::kStatic)
    settings.scheme =
        quant::FindScheme(scheme.activation_bits == 8 ? "8a8w" : "16a8w");
  return settings;
}

// The others, each once.
std::vector<quant::LayerId> LinearLayers(const ir::Module& module) {
  std::vector<quant::LayerId> layers;
  std::set<std::string> seen;
  for (const ir::Graph& graph : module.graphs) {
    for (const ir::Node& node : graph.nodes) {
      const std::string& name = graph[node.output].name;
      if (node.op != ir::OpKind::kLinear || RotatesHeads(module, graph, node) ||
          !seen.insert(name).second) {
        continue;
      }
      layers.push_back({.name = name,
                        .op = "linear",
                        .inputs = graph[node.inputs[0]].type.shape.back()});
    }
  }
  return layers;
}

// The layers whose K keeps 16 bits; says which and why.
std::set<int> ChooseWideKeys(const Calibration& calibration,
                             const quant::Recipe& recipe,
                             ProgressSink& progress) {
  std::set<int> wide;
  if (recipe.kv_bits != 8 || calibration.key_sqnr.empty()) return wide;
  const double least = recipe.kv_outlier_db;
  for (const auto& [layer, sqnr] : calibration.key_sqnr) {
    if (sqnr >= least) continue;
    wide.insert(layer);
    progress.Note(
        fmt::format("K of layer {} keeps 16 bits: 8 bits would have an "
                    "SQNR of {:.1f} dB, below kv_outlier_db {:g}",
                    layer, sqnr, least));
  }
  progress.Note(fmt::format(
      "KV cache: V of all layers and K of {} of {} in 8 "
      "bits",
      calibration.key_sqnr.size() - wide.size(), calibration.key_sqnr.size()));
  return wide;
}

// Whether the residual stream is to be half precision, as the recipe says or
// leaves open; what was observed of it lies in `stream`.
bool ChooseHalfResidual(const quant::Recipe& recipe, const quant::Range& stream,
                        const QuantizeJob& job) {
  if (recipe.residual != quant::ResidualKind::kAuto)
    return recipe.residual == quant::ResidualKind::kFloat16;
  const quant::Scheme& scheme = *recipe.defaults.scheme;
  if (scheme.activations != quant::ActivationKind::kStatic ||
      scheme.activation_bits != 16) {
    return false;
  }
  const float most = quant::MostOf(stream);
  if (job.has_half && most <= kMaxHalf) return true;
  job.progress.Note(fmt::format(
      "residual stream in 16-bit codes: {}",
      job.has_half ? fmt::format("float16 cannot hold its {:g}", most)
                   : "this chip has no float16"));
  return false;
}

// The linears whose outputs, or inputs too, are half precision: names for
// AssignOptions.
struct HalfLinears {
  std::set<std::string> terms, inputs;
};

// Says which and why.
HalfLinears ChooseHalfLinears(const ir::Module& module,
                              const quant::ResolvedRecipe& recipe,
                              const quant::Ranges& ranges,
                              ProgressSink& progress) {
  const auto say = [&](const std::string& name, const char* what) {
    progress.Note(fmt::format(
        "{} of {} in float16: its range is more than {:g} times as wide as is "
        "usual",
        what, name, quant::kCoarseSteps));
  };
  HalfLinears half{.terms = quant::CoarseTerms(module, ranges, recipe),
                   .inputs = quant::CoarseInputs(module, ranges, recipe)};
  for (const std::string& name : half.terms) say(name, "output");
  for (const std::string& name : half.inputs) say(name, "input");
  // A product of halves is one.
  half.terms.insert(half.inputs.begin(), half.inputs.end());
  return half;
}

// The layers that a search is for.
std::set<std::string> SearchedLayers(const quant::ResolvedRecipe& recipe) {
  std::set<std::string> layers;
  for (const auto& [name, settings] : recipe.layers)
    if (quant::WantsSearch(settings)) layers.insert(name);
  return layers;
}

// The same but for what is found by searching: scales and codes do not matter
// in graphs that never run.
quant::ResolvedRecipe WithoutSearch(quant::ResolvedRecipe recipe) {
  const auto simplify = [](quant::LayerSettings& settings) {
    settings.weight_observer = quant::WeightObserverKind::kMinMax;
    settings.rounding = quant::RoundingKind::kNearest;
  };
  simplify(recipe.recipe.defaults);
  for (auto& [name, settings] : recipe.layers) simplify(settings);
  return recipe;
}

// What is known of a model's activations; nothing before Observe.
struct Observed {
  TokenSequences sequences;
  Calibration calibration;
  std::optional<WeightTools> tools;  // borrows `sequences`

  const quant::SearchContext* search() const {
    return tools ? &tools->context() : nullptr;
  }
};

// Runs the calibration once for both, ranges and weights.
Status Observe(const ir::Module& module, const quant::ResolvedRecipe& recipe,
               const QuantizeJob& job, Observed& observed) {
  HX_ASSIGN_OR_RETURN(
      observed.sequences,
      MakeCalibrationSet(job.calibration, job.text, job.source.config.vocab,
                         static_cast<size_t>(job.context), job.progress));
  HX_ASSIGN_OR_RETURN(
      auto graphs,
      BuildTapped(job.source, LongestSequence(observed.sequences)));
  const TappedRun run = {.graphs = std::move(graphs),
                         .sequences = observed.sequences,
                         .threads = job.threads,
                         .progress = job.progress};
  std::function<void(const TapView& tap)> on_tap;
  if (const auto layers = SearchedLayers(recipe); !layers.empty()) {
    WeightTools& tools = observed.tools.emplace(
        module, layers, run, *job.source.checkpoint, job.cache);
    on_tap = [&tools](const TapView& tap) { tools.inputs().Add(tap); };
  }
  HX_ASSIGN_OR_RETURN(observed.calibration, Calibrate({.source = job.source,
                                                       .recipe = recipe,
                                                       .run = run,
                                                       .cache = job.cache,
                                                       .on_tap = on_tap}));
  return OkStatus();
}

// Warnings are dropped: they are about numbers.
Result<TokenSequences> QuantizeWithStandIns(ir::Module& module,
                                            const quant::ResolvedRecipe& recipe,
                                            const QuantizeJob& job) {
  job.progress.Begin("quantize", "", 0);
  const quant::ResolvedRecipe simple = WithoutSearch(recipe);
  const quant::Ranges ranges = StandInRanges(module);
  HX_RETURN_IF_ERROR(
      quant::AssignEncodings(
          module, {.recipe = &simple,
                   .ranges = &ranges,
                   .wide_k_layers = job.stand_ins->wide_k_layers,
                   .half_residual = ChooseHalfResidual(recipe.recipe, {}, job),
                   .progress = &job.progress})
          .status());
  return TokenSequences();
}

}  // namespace

Result<quant::Recipe> FitToModel(const quant::Recipe& recipe,
                                 const models::ModelSource& source,
                                 ProgressSink& progress) {
  if (!quant::Quantizes(recipe)) return recipe;
  const models::GraphRequest graph;
  HX_ASSIGN_OR_RETURN(const ir::Module module,
                      models::BuildDecoder(source, {&graph, 1}));
  quant::FittedRecipe fitted = quant::FitRecipe(recipe, LinearLayers(module));
  fitted.recipe.rotations = PossibleRotations(source.config, recipe.rotations);
  if (fitted.recipe.rotations != recipe.rotations) {
    fitted.notes.push_back(fmt::format(
        "recipe {}: rotations that this model cannot have are left out",
        recipe.name));
  }
  for (const std::string& note : fitted.notes) progress.Note(note);
  return std::move(fitted.recipe);
}

Result<quant::ResolvedRecipe> ResolveFor(const ir::Module& module,
                                         const quant::Recipe& recipe,
                                         ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(quant::ResolvedRecipe resolved,
                      quant::ResolveRecipe(recipe, LinearLayers(module)));
  for (const std::string& warning : resolved.warnings) progress.Warn(warning);
  for (const ir::Graph& graph : module.graphs) {
    for (const ir::Node& node : graph.nodes) {
      if (RotatesHeads(module, graph, node))
        resolved.layers[graph[node.output].name] = RotationSettings(recipe);
    }
  }
  return resolved;
}

bool NeedsRanges(const quant::ResolvedRecipe& recipe) {
  const auto is_static = [](const quant::Scheme* scheme) {
    return scheme->activations == quant::ActivationKind::kStatic;
  };
  return is_static(recipe.recipe.defaults.scheme) ||
         std::any_of(
             recipe.layers.begin(), recipe.layers.end(),
             [&](const auto& layer) { return is_static(layer.second.scheme); });
}

Status RefuseCalibration(const quant::ResolvedRecipe& recipe,
                         const CalibrationOptions& calibration) {
  if (!IsGiven(calibration)) return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("--calib-*: expected with a recipe that "
                           "calibrates, found {}",
                           Quoted(recipe.recipe.name))};
}

bool IsStatic(const quant::Recipe& recipe) {
  return quant::FamilyOf(*recipe.defaults.scheme) ==
         quant::SchemeFamily::kStatic;
}

Result<TokenSequences> Quantize(ir::Module& module,
                                const quant::ResolvedRecipe& recipe,
                                const QuantizeJob& job) {
  if (job.stand_ins != nullptr)
    return QuantizeWithStandIns(module, recipe, job);
  Observed observed;
  HX_RETURN_IF_ERROR(NeedsRanges(recipe)
                         ? Observe(module, recipe, job, observed)
                         : RefuseCalibration(recipe, job.calibration));
  const Calibration& calibration = observed.calibration;
  const std::set<int> wide =
      ChooseWideKeys(calibration, recipe.recipe, job.progress);
  const quant::Range stream = quant::ResidualRange(module, calibration.ranges);
  const bool half = ChooseHalfResidual(recipe.recipe, stream, job);
  HalfLinears linears;
  if (job.has_half) {
    linears =
        ChooseHalfLinears(module, recipe, calibration.ranges, job.progress);
  }
  job.progress.Begin("quantize", "", 0);
  HX_ASSIGN_OR_RETURN(
      const std::vector<std::string> warnings,
      quant::AssignEncodings(module, {.recipe = &recipe,
                                      .ranges = &calibration.ranges,
                                      .wide_k_layers = wide,
                                      .half_residual = half,
                                      .half_terms = std::move(linears.terms),
                                      .half_inputs = std::move(linears.inputs),
                                      .search = observed.search(),
                                      .progress = &job.progress}));
  for (const std::string& warning : warnings) job.progress.Warn(warning);
  return std::move(observed.sequences);
}

}  // namespace hexllm

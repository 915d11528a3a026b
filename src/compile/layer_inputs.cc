#include "compile/layer_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/quote.h"

namespace hexllm {
namespace {

// Calls visit(linear) for the linears of the graph.
template <typename Visit>
void ForEachLinear(const ir::Graph& graph, Visit visit) {
  for (const ir::Node& node : graph.nodes)
    if (node.op == ir::OpKind::kLinear) visit(node);
}

void AddInputTaps(const std::map<std::string, std::string>& inputs,
                  ir::Graph& graph) {
  std::map<std::string, ir::ValueId> taps;
  ForEachLinear(graph, [&](const ir::Node& linear) {
    const auto found = inputs.find(graph[linear.output].name);
    if (found == inputs.end()) return;
    const ir::ValueId x = linear.inputs[0];
    // Values of one name that linears read are one value.
    HX_CHECK(taps.emplace(found->second, x).first->second == x);
  });
  for (const auto& [name, value] : taps) {
    graph.AddOutput({.kind = RoleKind::kTap, .index = 0, .name = name}, value);
  }
}

// A row of mean square 1 (a row of zeros stays one).
void AddNormalized(std::span<const float> row, std::vector<float>& rows) {
  double squares = 0;
  for (const float value : row)
    squares += static_cast<double>(value) * static_cast<double>(value);
  const double mean = squares / static_cast<double>(row.size());
  const auto factor = static_cast<float>(mean > 0 ? 1 / std::sqrt(mean) : 0);
  for (const float value : row) rows.push_back(value * factor);
}

}  // namespace

SampledInputs::SampledInputs(const ir::Module& module,
                             const quant::ResolvedRecipe& recipe,
                             const TappedRun& run, const FileCache* cache)
    : run_(run), cache_(cache) {
  for (const ir::Graph& graph : module.graphs) {
    ForEachLinear(graph, [&](const ir::Node& linear) {
      const std::string& layer = graph[linear.output].name;
      if (!quant::WantsSearch(recipe.For(layer))) return;
      inputs_[layer] = graph[linear.inputs[0]].name;
      samples_[inputs_[layer]];
    });
  }
}

const std::string& SampledInputs::InputOf(const std::string& layer) const {
  return inputs_.at(layer);
}

Status SampledInputs::Build() {
  if (tapped_ != nullptr) return OkStatus();
  HX_ASSIGN_OR_RETURN(tapped_, BuildTapped(run_, [this](ir::Graph& graph) {
                        AddInputTaps(inputs_, graph);
                      }));
  return OkStatus();
}

Result<Digest> SampledInputs::Key() {
  if (key_) return *key_;
  HX_RETURN_IF_ERROR(Build());
  HX_CHECK(cache_ != nullptr);
  Hasher key = cache_->StartKey("layer inputs");
  AddToKey(*tapped_, run_.sequences, key);
  return *(key_ = key.Finish());
}

Result<std::span<const float>> SampledInputs::Rows(const std::string& layer) {
  if (!has_run_) {
    // In the middle of another step.
    run_.progress.Note("layers' inputs are sampled");
    NullProgress quiet;
    HX_RETURN_IF_ERROR(Run(quiet));
  }
  return std::span<const float>(samples_.at(InputOf(layer)).rows);
}

Status SampledInputs::Prepare() {
  return cache_ == nullptr ? Run(run_.progress) : OkStatus();
}

Status SampledInputs::Run(ProgressSink& progress) {
  HX_RETURN_IF_ERROR(Build());
  has_run_ = true;
  return RunTapped({.source = run_.source,
                    .sequences = run_.sequences,
                    .threads = run_.threads,
                    .progress = progress},
                   tapped_, "sample inputs",
                   [this](const TapView& tap) { return Add(tap); });
}

Status SampledInputs::Add(const TapView& tap) {
  HX_CHECK(tap.first_row == 0 && tap.shape.size() == 2);
  Sample& sample = samples_.at(std::string(tap.name));
  const auto width = static_cast<size_t>(tap.shape[1]);
  const int64_t total = TotalTokens(run_.sequences);
  const int64_t kept = std::min(total, kSampledTokens);
  if (sample.seen == 0) sample.rows.reserve(static_cast<size_t>(kept) * width);
  for (int64_t t = 0; t < tap.shape[0]; ++t) {
    const int64_t before = sample.seen++;
    if (before * kept / total == sample.seen * kept / total) continue;
    const auto row = tap.values.subspan(static_cast<size_t>(t) * width, width);
    const bool finite = std::ranges::all_of(
        row, [](float value) { return std::isfinite(value); });
    if (!finite) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("value {}: expected finite numbers, found NaN "
                               "or infinity; check the checkpoint's weights",
                               Quoted(tap.name))};
    }
    AddNormalized(row, sample.rows);
  }
  return OkStatus();
}

}  // namespace hexllm

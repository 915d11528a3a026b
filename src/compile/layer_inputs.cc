#include "compile/layer_inputs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "quant/input_moments.h"

namespace hexllm {
namespace {

// Calls visit(linear) for the linears of the graph.
template <typename Visit>
void ForEachLinear(const ir::Graph& graph, Visit visit) {
  for (const ir::Node& node : graph.nodes)
    if (node.op == ir::OpKind::kLinear) visit(node);
}

// Rows whose second moments are added together.
constexpr int64_t kRowsAtOnce = 256;

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

std::vector<bool> SampledTokens(const TokenSequences& sequences, int64_t most) {
  const int64_t total = TotalTokens(sequences);
  const int64_t wanted = std::min(total, most);
  const size_t step = sequences.size() / kMostFirstTokens + 1;
  std::vector<bool> sampled;
  for (size_t s = 0; s < sequences.size(); ++s) {
    for (size_t i = 0; i < sequences[s].size(); ++i) {
      const int64_t before = std::ssize(sampled);
      sampled.push_back((i == 0 && s % step == 0) ||
                        before * wanted / total !=
                            (before + 1) * wanted / total);
    }
  }
  return sampled;
}

SampledInputs::SampledInputs(const ir::Module& module,
                             const std::set<std::string>& layers,
                             const TappedRun& run, const FileCache* cache,
                             quant::ProductFn product, ThreadPool& pool)
    : run_(run),
      cache_(cache),
      product_(std::move(product)),
      pool_(pool),
      sampled_(SampledTokens(run.sequences, kSampledTokens)) {
  for (const ir::Graph& graph : module.graphs) {
    ForEachLinear(graph, [&](const ir::Node& linear) {
      const std::string& layer = graph[linear.output].name;
      if (!layers.contains(layer)) return;
      inputs_[layer] = graph[linear.inputs[0]].name;
      kept_[inputs_[layer]];
    });
  }
}

const std::string& SampledInputs::InputOf(const std::string& layer) const {
  return inputs_.at(layer);
}

Result<Digest> SampledInputs::Key() {
  if (key_) return *key_;
  HX_CHECK(cache_ != nullptr);
  Hasher key = cache_->StartKey("sampled layer inputs");
  key.AddNumber(kSampledTokens);
  key.AddNumber(kWidestMoments);
  AddToKey(run_, key);
  return *(key_ = key.Finish());
}

Result<quant::InputSample> SampledInputs::Sample(const std::string& layer) {
  const Kept& kept = kept_.at(InputOf(layer));
  if (kept.seen == 0) HX_RETURN_IF_ERROR(Run());
  Finish();
  HX_CHECK(kept.seen == sampled_.size());
  return quant::InputSample{.rows = kept.rows, .moments = kept.moments};
}

Status SampledInputs::Run() {
  run_.progress.Note("layers' inputs are sampled");
  NullProgress quiet;  // in the middle of another step
  return RunTapped(run_, "", quiet, [this](const TapView& tap) {
    Add(tap);
    return OkStatus();
  });
}

// Once all rows are there.
void SampledInputs::Finish() {
  if (is_finished_) return;
  is_finished_ = true;
  for (auto& [name, kept] : kept_) {
    if (kept.moments.empty()) continue;
    AddToMoments(kept);
    quant::MirrorUpper(kept.moments, kept.width);
  }
}

// Moves the rows that wait.
void SampledInputs::AddToMoments(Kept& kept) {
  if (kept.rows.empty()) return;
  quant::AddSecondMoments(kept.rows, kept.width, product_, pool_, kept.moments);
  kept.rows.clear();
}

void SampledInputs::Add(const TapView& tap) {
  const auto found = kept_.find(std::string(tap.name));
  if (found == kept_.end()) return;
  HX_CHECK(tap.first_row == 0 && tap.shape.size() == 2);
  Kept& kept = found->second;
  const int64_t width = tap.shape[1];
  const bool by_moments =
      std::ssize(sampled_) > kSampledTokens && width <= kWidestMoments;
  if (kept.seen == 0) {
    const int64_t rows =
        by_moments ? kRowsAtOnce : std::ranges::count(sampled_, true);
    kept.width = width;
    kept.rows.reserve(static_cast<size_t>(rows * width));
    if (by_moments) kept.moments.resize(static_cast<size_t>(width * width));
  }
  for (int64_t t = 0; t < tap.shape[0]; ++t) {
    if (!sampled_[kept.seen++] && !by_moments) continue;
    const auto row = tap.values.subspan(static_cast<size_t>(t * width),
                                        static_cast<size_t>(width));
    AddNormalized(row, kept.rows);
    if (by_moments && std::ssize(kept.rows) == kRowsAtOnce * width)
      AddToMoments(kept);
  }
}

}  // namespace hexllm

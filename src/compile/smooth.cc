#include "compile/smooth.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "artifact/format.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/quote.h"
#include "compile/artifact_parts.h"
#include "compile/quantize.h"
#include "compile/rewrite_weights.h"
#include "compile/tapped_run.h"
#include "compile/weight_tools.h"
#include "models/decoder.h"
#include "passes/pipeline.h"
#include "quant/channel_factors.h"
#include "quant/residual.h"
#include "quant/weight_encoding.h"

namespace hexllm {
namespace {

using models::DecoderConfig;
using models::ModelSource;
using quant::ChannelRanges;
using quant::Smoothing;

// Where a model can have factors. Names are of layers, without ".weight".
struct Place {
  std::string giver;
  double weight_offset = 0;          // of a norm
  std::vector<std::string> readers;  // which read one value
  quant::ChannelTies ties = {};
};

using Factors = std::vector<float>;  // [K] of the readers; empty = all 1

void AddPlaces(const DecoderConfig& config, int64_t layer,
               std::vector<Place>& places) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const bool gated = config.mlp_form == models::MlpForm::kGated;
  const auto norm = [&](const char* name) {
    places.push_back({.giver = prefix + name,
                      .weight_offset = config.norm_weight_offset,
                      .readers = {}});
  };
  const auto read = [&](const char* name) {
    places.back().readers.push_back(prefix + name);
  };
  norm("input_layernorm");
  for (const char* name :
       {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"})
    read(name);
  if (config.layer_form == models::LayerForm::kSequential) {
    norm(config.norm_placement == models::NormPlacement::kBefore
             ? "post_attention_layernorm"
             : "pre_feedforward_layernorm");
  }
  if (gated) read("mlp.gate_proj");
  read("mlp.up_proj");
  places.push_back({.giver = prefix + "self_attn.v_proj",
                    .readers = {prefix + "self_attn.o_proj"},
                    .ties = {.repeats = config.heads / config.kv_heads,
                             .size = config.head_dim}});
  if (!gated) return;
  places.push_back(
      {.giver = prefix + "mlp.up_proj", .readers = {prefix + "mlp.down_proj"}});
}

std::vector<Place> PlacesOf(const DecoderConfig& config) {
  std::vector<Place> places;
  for (int64_t layer = 0; layer < config.layers; ++layer)
    AddPlaces(config, layer, places);
  places.push_back({.giver = "model.norm",
                    .weight_offset = config.norm_weight_offset,
                    .readers = {"lm_head"}});
  return places;
}

bool IsProduct(const Place& place) { return place.giver.ends_with(".up_proj"); }

// A linear of the graph.
struct Linear {
  std::string input;  // the name of what it reads
  const ir::Constant* weight;
};

std::map<std::string, Linear> LinearsOf(const ir::Module& module) {
  std::map<std::string, Linear> linears;
  const ir::Graph& graph = module.graphs.front();
  for (const ir::Node& node : graph.nodes) {
    if (node.op != ir::OpKind::kLinear) continue;
    linears[graph[node.output].name] = {
        .input = graph[node.inputs[0]].name,
        .weight = &module.constants[graph[node.inputs[1]].constant]};
  }
  return linears;
}

// Finds the factors of all places.
class Smoother {
 public:
  Smoother(const ModelSource& source, const SmoothJob& job, ir::Module module,
           quant::ResolvedRecipe recipe)
      : source_(source),
        job_(job),
        module_(std::move(module)),
        recipe_(std::move(recipe)),
        places_(PlacesOf(source.config)),
        linears_(LinearsOf(module_)) {}

  std::span<const Place> places() const { return places_; }
  // In the order of the places.
  Result<std::vector<Factors>> Find();

 private:
  Result<std::vector<Factors>> Make(const TappedRun& run);
  Result<Factors> FactorsOf(const Place& place, WeightTools& tools) const;
  // What a layer's half precision is for, and no search.
  bool IsCoarse(const Place& place) const;
  float WidthOf(const Place& place) const;  // of what is read
  bool Searches() const {
    return job_.recipe.smooth.kind == Smoothing::Kind::kSearch;
  }

  const ModelSource& source_;
  const SmoothJob& job_;
  const ir::Module module_;
  const quant::ResolvedRecipe recipe_;
  const std::vector<Place> places_;
  const std::map<std::string, Linear> linears_;
  std::map<std::string, ChannelRanges, std::less<>> ranges_;  // by input
};

bool Smoother::IsCoarse(const Place& place) const {
  const std::string& reader = place.readers.front();
  const quant::Scheme& scheme = *recipe_.For(reader).scheme;
  if (!IsProduct(place) || scheme.activation_bits != 16 || scheme.block)
    return false;
  std::vector<float> widths;
  for (const Place& other : places_)
    if (IsProduct(other)) widths.push_back(WidthOf(other));
  std::ranges::sort(widths);
  return WidthOf(place) > quant::kCoarseSteps * widths[(widths.size() - 1) / 2];
}

float Smoother::WidthOf(const Place& place) const {
  const ChannelRanges& ranges =
      ranges_.at(linears_.at(place.readers.front()).input);
  return std::ranges::max(ranges.most()) - std::ranges::min(ranges.least());
}

Result<Factors> Smoother::FactorsOf(const Place& place,
                                    WeightTools& tools) const {
  std::vector<quant::FactoredLinear> linears;
  for (const std::string& reader : place.readers)
    linears.push_back({*linears_.at(reader).weight, recipe_.For(reader)});
  const bool counts = std::ranges::any_of(linears, [](const auto& linear) {
    return quant::TakesCodes(linear.weight, linear.settings);
  });
  if (!counts) return Factors();
  const std::string& first = place.readers.front();
  const std::string& input = linears_.at(first).input;
  const ChannelRanges& ranges = ranges_.at(input);
  if (!ranges.IsFinite()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("value {}: expected finite numbers in "
                             "calibration, found NaN or infinity",
                             Quoted(input))};
  }
  const quant::FactorTask task = {
      .linears = linears, .ranges = ranges, .ties = place.ties};
  if (!Searches()) return quant::FactorsByAlpha(task, job_.recipe.smooth.alpha);
  if (IsCoarse(place)) return Factors();
  HX_ASSIGN_OR_RETURN(const quant::InputSample sample,
                      tools.inputs().Sample(first));
  return quant::SearchFactors(task, sample, tools.context());
}

Result<std::vector<Factors>> Smoother::Make(const TappedRun& run) {
  std::set<std::string> searched;
  for (const Place& place : places_) {
    ranges_[linears_.at(place.readers.front()).input];
    if (Searches()) searched.insert(place.readers.front());
  }
  WeightTools tools(module_, searched, run, *source_.checkpoint, nullptr);
  const auto add = [&](const TapView& tap) {
    if (const auto found = ranges_.find(tap.name); found != ranges_.end())
      found->second.Add(tap.values, tap.shape.back());
    tools.inputs().Add(tap);
    return OkStatus();
  };
  HX_RETURN_IF_ERROR(RunTapped(run, "observe channels", job_.progress, add));
  job_.progress.Begin("smooth channels", "places", std::ssize(places_));
  std::vector<Factors> made;
  for (const Place& place : places_) {
    HX_ASSIGN_OR_RETURN(Factors factors, FactorsOf(place, tools));
    made.push_back(std::move(factors));
    tools.context().release();
    job_.progress.Update(std::ssize(made));
  }
  return made;
}

std::string Encode(std::span<const Factors> all) {
  ByteWriter out;
  for (const Factors& factors : all) {
    out.Write<uint64_t>(factors.size());
    out.WriteBytes(std::as_bytes(std::span(factors)));
  }
  return std::move(out).Take();
}

// Of `count` places.
Result<std::vector<Factors>> Decode(ByteSpan bytes, size_t count) {
  ByteReader in(bytes);
  std::vector<Factors> all(count);
  for (Factors& factors : all) {
    HX_ASSIGN_OR_RETURN(const uint64_t size, in.Read<uint64_t>());
    for (uint64_t k = 0; k < size; ++k) {
      HX_ASSIGN_OR_RETURN(const float factor, in.Read<float>());
      factors.push_back(factor);
    }
  }
  return all;
}

Result<std::vector<Factors>> Smoother::Find() {
  HX_ASSIGN_OR_RETURN(auto graphs,
                      BuildTapped(source_, LongestSequence(job_.sequences)));
  const TappedRun run = {.graphs = std::move(graphs),
                         .sequences = job_.sequences,
                         .threads = job_.threads,
                         .progress = job_.progress};
  if (job_.cache == nullptr) return Make(run);
  Hasher hasher = job_.cache->StartKey("channel factors");
  AddToKey(run, hasher);
  hasher.Add(quant::RecipeToJson(job_.recipe));
  const Digest key = hasher.Finish();
  if (const auto entry = job_.cache->Find(key, job_.progress)) {
    job_.progress.Note("channel factors: from the cache");
    return Decode(entry->bytes, places_.size());
  }
  HX_ASSIGN_OR_RETURN(std::vector<Factors> made, Make(run));
  job_.cache->Store(key, AsBytes(Encode(made)), job_.progress);
  return made;
}

// What becomes of the numbers of a tensor.
struct FactorChange {
  std::vector<float> rows;     // of a vector: its elements; empty = 1
  std::vector<float> columns;  // empty = 1
  float offset = 0;            // of the vector's numbers in the file
};

// The inverse factors of what `place` reads from, [C].
std::vector<float> GiverFactors(const Place& place, const Factors& factors) {
  const auto piece = static_cast<size_t>(place.ties.size);
  const auto group = static_cast<size_t>(place.ties.repeats) * piece;
  std::vector<float> inverse;
  for (size_t at = 0; at < factors.size(); at += group) {
    for (size_t d = 0; d < piece; ++d) inverse.push_back(1 / factors[at + d]);
  }
  return inverse;
}

std::map<std::string, FactorChange> ChangesOf(std::span<const Place> places,
                                              std::span<const Factors> all) {
  std::map<std::string, FactorChange> changes;
  for (size_t i = 0; i < places.size(); ++i) {
    if (all[i].empty()) continue;
    const Place& place = places[i];
    for (const char* part : {".weight", ".bias"})
      changes[place.giver + part].rows = GiverFactors(place, all[i]);
    changes[place.giver + ".weight"].offset =
        static_cast<float>(place.weight_offset);
    for (const std::string& reader : place.readers)
      changes[reader + ".weight"].columns = all[i];
  }
  return changes;
}

TensorRewrite RewriteOf(const ir::Constant& constant,
                        const FactorChange& change) {
  if (constant.type.shape.size() == 1) {
    return {.apply = [&change](std::span<float> values, int64_t) {
      for (size_t i = 0; i < values.size(); ++i)
        values[i] =
            (values[i] + change.offset) * change.rows[i] - change.offset;
    }};
  }
  return {
      .apply = [&change, width = static_cast<size_t>(constant.type.shape[1])](
                   std::span<float> values, int64_t first) {
        for (size_t i = 0; i < values.size(); ++i) {
          if (!change.rows.empty())
            values[i] *= change.rows[static_cast<size_t>(first) + i / width];
          if (!change.columns.empty()) values[i] *= change.columns[i % width];
        }
      }};
}

// What `writer` writes anew of `source`, with the changes.
Result<ModelSource> Fold(const ModelSource& source, WeightRewriter writer,
                         const std::map<std::string, FactorChange>& changes,
                         ProgressSink& progress) {
  progress.Begin("write smoothed weights", "tensors",
                 std::ssize(writer.constants()));
  int64_t done = 0;
  for (const auto& [name, constant] : writer.constants()) {
    const auto change = changes.find(name);
    HX_RETURN_IF_ERROR(writer.Write(
        name, *constant,
        change == changes.end() ? TensorRewrite()
                                : RewriteOf(*constant, change->second)));
    progress.Update(++done);
  }
  // A head that is the table has other numbers from now on.
  const auto head = changes.find("lm_head.weight");
  const bool parts =
      head != changes.end() && source.config.head == models::Head::kTied;
  if (parts) {
    const ir::Constant& table =
        *writer.constants().at("model.embed_tokens.weight");
    HX_RETURN_IF_ERROR(
        writer.Write(head->first, table, RewriteOf(table, head->second)));
  }
  HX_ASSIGN_OR_RETURN(ModelSource made, writer.Finish());
  if (parts) made.config.head = models::Head::kUntied;
  return made;
}

// Of a model that is smoothed so, whatever its factors are.
uint64_t SmoothedId(const ModelSource& source, const SmoothJob& job) {
  ByteWriter out;
  out.Write(ModelId(source));
  out.WriteString(quant::RecipeToJson(job.recipe));
  for (const std::vector<int32_t>& ids : job.sequences) {
    out.Write<uint64_t>(ids.size());
    out.WriteBytes(std::as_bytes(std::span(ids)));
  }
  return artifact::Checksum(AsBytes(std::move(out).Take()));
}

}  // namespace

Result<ModelSource> SmoothModel(const ModelSource& source,
                                const SmoothJob& job) {
  const ModelSource& onto = job.onto == nullptr ? source : *job.onto;
  // Without room it fails before the work.
  HX_ASSIGN_OR_RETURN(WeightRewriter writer,
                      WeightRewriter::Create(onto, "smoothed weights"));
  const models::GraphRequest graph;
  HX_ASSIGN_OR_RETURN(ir::Module module,
                      models::BuildDecoder(source, {&graph, 1}));
  NullProgress quiet;  // what it has to say comes with the graphs
  HX_ASSIGN_OR_RETURN(quant::ResolvedRecipe recipe,
                      ResolveFor(module, job.recipe, quiet));
  HX_RETURN_IF_ERROR(RunPipeline(module, kStaticPipeline, {}));
  Smoother smoother(source, job, std::move(module), std::move(recipe));
  HX_ASSIGN_OR_RETURN(const std::vector<Factors> factors, smoother.Find());
  const auto changed = std::ranges::count_if(
      factors, [](const Factors& found) { return !found.empty(); });
  job.progress.Note(fmt::format("channels of {} of {} places smoothed", changed,
                                factors.size()));
  const auto changes = ChangesOf(smoother.places(), factors);
  HX_ASSIGN_OR_RETURN(ModelSource made,
                      Fold(onto, std::move(writer), changes, job.progress));
  made.id = SmoothedId(source, job);
  return made;
}

}  // namespace hexllm

#include "compile/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "artifact/writer.h"
#include "backend/cpu/lower.h"
#include "backend/engines.h"
#include "base/check.h"
#include "base/quote.h"
#include "compile/artifact_parts.h"
#include "compile/calibration_cache.h"
#include "compile/key_statistics.h"
#include "compile/taps.h"
#include "compile/targets.h"
#include "models/decoder.h"
#include "models/rope_table.h"
#include "passes/pipeline.h"
#include "quant/observer.h"
#include "runtime/session.h"

namespace hexllm {
namespace {

// T of the blocks. Larger ones cost memory for the taps and gain little.
constexpr size_t kBlockTokens = 32;

constexpr std::string_view kMaskedScores = ".masked_scores";
constexpr std::string_view kKeyCache = ".k_cache";

size_t LongestOf(const TokenSequences& sequences) {
  size_t longest = 0;
  for (const auto& ids : sequences) longest = std::max(longest, ids.size());
  return longest;
}

Result<std::shared_ptr<const artifact::Artifact>> TappedArtifact(
    const CalibrationJob& job) {
  const size_t longest = LongestOf(job.sequences);
  const auto block = static_cast<int64_t>(std::min(kBlockTokens, longest));
  const auto context = static_cast<int64_t>(longest);
  std::vector<models::GraphRequest> requests;
  if (block > 1) {
    requests.push_back({GraphKind::kPrefill, block, context, LogitsRows::kAll});
  }
  requests.push_back({GraphKind::kKv, 1, context, LogitsRows::kAll});
  HX_ASSIGN_OR_RETURN(ir::Module module,
                      models::BuildDecoder(job.source, requests));
  HX_RETURN_IF_ERROR(RunPipeline(module, kStaticPipeline, {}));
  for (ir::Graph& graph : module.graphs) AddTaps(graph);
  artifact::MemorySink sink;
  artifact::Manifest manifest = ManifestOf(job.source, context);
  HX_RETURN_IF_ERROR(AddRopeTables(job.source, context, sink, manifest));
  NullProgress quiet;
  HX_ASSIGN_OR_RETURN(manifest.graphs, cpu::Lower(module, sink, quiet));
  return sink.Finish(std::move(manifest), job.source.checkpoint);
}

// Observers of all tapped values.
class Observers {
 public:
  explicit Observers(const CalibrationJob& job) : job_(job) {}

  void Add(const TapView& tap);
  Result<Calibration> Finish() const;

 private:
  quant::Observer& ObserverOf(const std::string& name);

  const CalibrationJob& job_;
  std::map<std::string, std::unique_ptr<quant::Observer>> observers_;
  std::vector<std::string> names_;  // in graph order
  std::map<int, KeyStatistics> keys_;
  std::vector<float> visible_;
};

quant::Observer& Observers::ObserverOf(const std::string& name) {
  std::unique_ptr<quant::Observer>& observer = observers_[name];
  if (observer == nullptr) {
    const auto [settings, bits] = ChooseObserver(job_.recipe, name);
    observer = quant::MakeObserver(settings, bits);
    names_.push_back(name);
  }
  return *observer;
}

void Observers::Add(const TapView& tap) {
  // Blocks are full: the driver sees to it.
  HX_CHECK(tap.first_row == 0);
  const std::string name(tap.name);
  if (name.ends_with(kKeyCache)) {
    if (const auto layer = LayerOfName(name))
      keys_[*layer].Add(tap.values, tap.shape);
  }
  if (!name.ends_with(kMaskedScores)) return ObserverOf(name).Add(tap.values);
  visible_.clear();
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  std::copy_if(tap.values.begin(), tap.values.end(),
               std::back_inserter(visible_),
               [](float value) { return value != kHidden; });
  ObserverOf(name).Add(visible_);
}

Result<Calibration> Observers::Finish() const {
  Calibration result;
  for (const std::string& name : names_) {
    HX_ASSIGN_OR_RETURN(const quant::Observation seen,
                        observers_.at(name)->Finish(name));
    result.ranges[name] = {.range = seen.range, .clipped = seen.clipped};
  }
  for (const auto& [layer, statistics] : keys_)
    result.key_sqnr[layer] = statistics.SqnrOf8Bits();
  return result;
}

// Cosines and sines of all positions that the model can have lie in [-s, s],
// where s is the attention factor of the scaling.
void AddRopeRanges(const models::ModelSource& source, int64_t positions,
                   quant::Ranges& ranges) {
  for (size_t i = 0; i < source.config.ropes.size(); ++i) {
    const models::RopeTableData table =
        models::MakeRopeTable(source.config.ropes[i], positions);
    float most = 0;
    for (const auto* values : {&table.cos, &table.sin}) {
      for (const float value : *values) most = std::max(most, std::abs(value));
    }
    for (const RoleKind kind : {RoleKind::kRopeCos, RoleKind::kRopeSin}) {
      ranges[RoleToString({kind, static_cast<int32_t>(i)})] = {
          .range = {-most, most}, .clipped = 0};
    }
  }
}

// Full blocks first, then what is left token by token: no step has padding.
Status RunSequence(Session& session, std::span<const int32_t> ids) {
  session.Reset();
  const size_t whole = ids.size() / kBlockTokens * kBlockTokens;
  if (whole > 0) HX_RETURN_IF_ERROR(session.Prefill(ids.first(whole)));
  for (size_t i = whole; i < ids.size(); ++i)
    HX_RETURN_IF_ERROR(session.Prefill(ids.subspan(i, 1)));
  return OkStatus();
}

// Runs everything and observes it.
Result<Calibration> Observe(
    const CalibrationJob& job,
    const std::shared_ptr<const artifact::Artifact>& artifact) {
  HX_ASSIGN_OR_RETURN(const auto engine,
                      CreateEngine("cpu", {.threads = job.threads}));
  Observers observers(job);
  SessionOptions options;
  options.on_tap = [&](const TapView& tap) {
    observers.Add(tap);
    return OkStatus();
  };
  HX_ASSIGN_OR_RETURN(const auto session,
                      Session::Create({artifact, engine.get(), options}));
  size_t total = 0;
  for (const auto& ids : job.sequences) total += ids.size();
  job.progress.Begin("calibrate", "tokens", static_cast<int64_t>(total));
  size_t done = 0;
  for (const auto& ids : job.sequences) {
    HX_RETURN_IF_ERROR(RunSequence(*session, ids));
    done += ids.size();
    job.progress.Update(static_cast<int64_t>(done));
  }
  return observers.Finish();
}

// From the cache, or observed and put there.
Result<Calibration> FindOrObserve(
    const CalibrationJob& job,
    const std::shared_ptr<const artifact::Artifact>& artifact) {
  if (job.cache == nullptr) return Observe(job, artifact);
  const Digest key = CalibrationKey(job, *artifact);
  if (const auto entry = job.cache->Find(key, job.progress)) {
    job.progress.Note("calibration: from the cache");
    return DecodeCalibration(entry->bytes);
  }
  HX_ASSIGN_OR_RETURN(Calibration made, Observe(job, artifact));
  job.cache->Store(key, AsBytes(EncodeCalibration(made)), job.progress);
  return made;
}

}  // namespace

Result<Calibration> Calibrate(const CalibrationJob& job) {
  HX_CHECK(!job.sequences.empty());
  HX_ASSIGN_OR_RETURN(const auto artifact, TappedArtifact(job));
  HX_ASSIGN_OR_RETURN(Calibration result, FindOrObserve(job, artifact));
  AddRopeRanges(job.source, static_cast<int64_t>(LongestOf(job.sequences)),
                result.ranges);
  return result;
}

}  // namespace hexllm

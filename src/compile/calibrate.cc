#include "compile/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/quote.h"
#include "compile/calibration_cache.h"
#include "compile/key_statistics.h"
#include "models/rope_table.h"
#include "quant/observer.h"

namespace hexllm {
namespace {

constexpr std::string_view kMaskedScores = ".masked_scores";
constexpr std::string_view kKeyCache = ".k_cache";

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

// Runs everything and observes it.
Result<Calibration> Observe(const CalibrationJob& job) {
  Observers observers(job);
  const auto observe = [&](const TapView& tap) {
    observers.Add(tap);
    if (job.on_tap) job.on_tap(tap);
    return OkStatus();
  };
  HX_RETURN_IF_ERROR(
      RunTapped(job.run, "calibrate", job.run.progress, observe));
  return observers.Finish();
}

// From the cache, or observed and put there.
Result<Calibration> FindOrObserve(const CalibrationJob& job) {
  if (job.cache == nullptr) return Observe(job);
  ProgressSink& progress = job.run.progress;
  const Digest key = CalibrationKey(job);
  if (const auto entry = job.cache->Find(key, progress)) {
    progress.Note("calibration: from the cache");
    return DecodeCalibration(entry->bytes);
  }
  HX_ASSIGN_OR_RETURN(Calibration made, Observe(job));
  job.cache->Store(key, AsBytes(EncodeCalibration(made)), progress);
  return made;
}

}  // namespace

Result<Calibration> Calibrate(const CalibrationJob& job) {
  HX_ASSIGN_OR_RETURN(Calibration result, FindOrObserve(job));
  AddRopeRanges(job.source,
                static_cast<int64_t>(LongestSequence(job.run.sequences)),
                result.ranges);
  return result;
}

}  // namespace hexllm

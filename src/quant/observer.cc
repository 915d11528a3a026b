#include "quant/observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quote.h"
#include "quant/clip_search.h"
#include "quant/histogram.h"
#include "quant/row_stats.h"

namespace hexllm::quant {
namespace {

// What all kinds share. A kind adds FindRange, and AddFinite if it needs more
// of a batch than the statistics.
class StatsObserver : public Observer {
 public:
  void Add(std::span<const float> batch) override {
    const RowStats stats = StatsOf(batch);
    nonfinite_ += batch.size() - stats.finite;
    if (stats.finite == 0) return;
    extremes_ = count_ == 0
                    ? stats.extremes
                    : Range{std::min(extremes_.min, stats.extremes.min),
                            std::max(extremes_.max, stats.extremes.max)};
    AddFinite(batch, stats);
    count_ += stats.finite;
  }

  Result<Observation> Finish(std::string_view name) const override {
    if (nonfinite_ > 0) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("value {}: expected finite numbers in "
                               "calibration, found {} of {} NaN or infinite; "
                               "check the checkpoint's weights",
                               Quoted(name), nonfinite_, nonfinite_ + count_)};
    }
    if (count_ == 0) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("value {}: calibration showed no numbers; "
                               "expected at least one token",
                               Quoted(name))};
    }
    Observation seen;
    seen.range = FindRange();
    seen.extremes = extremes_;
    seen.count = count_;
    seen.clipped = FractionOutside(seen.range);
    return seen;
  }

 protected:
  // Called before the batch is counted; it has finite numbers.
  virtual void AddFinite(std::span<const float> batch,
                         const RowStats& stats) = 0;
  virtual Range FindRange() const = 0;
  virtual double FractionOutside(Range range) const = 0;

  uint64_t count() const { return count_; }
  Range extremes() const { return extremes_; }
  // `range` without what no number reached.
  Range WithinExtremes(double min, double max) const {
    return {std::max(static_cast<float>(min), extremes_.min),
            std::min(static_cast<float>(max), extremes_.max)};
  }

 private:
  uint64_t count_ = 0;
  uint64_t nonfinite_ = 0;
  Range extremes_;
};

class MinMaxObserver final : public StatsObserver {
 protected:
  void AddFinite(std::span<const float>, const RowStats&) override {}
  Range FindRange() const override { return extremes(); }
  double FractionOutside(Range) const override { return 0; }
};

// Those that must know how many numbers lie where.
class HistogramObserver : public StatsObserver {
 protected:
  void AddFinite(std::span<const float> batch, const RowStats&) override {
    histogram_.Add(batch);
  }
  double FractionOutside(Range range) const override {
    // The histogram's share of the outermost bins is a guess: nothing lies
    // beyond the extremes.
    if (range.min <= extremes().min && range.max >= extremes().max) return 0;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return histogram_.FractionOutside(
        {range.min <= extremes().min ? -kInfinity : range.min,
         range.max >= extremes().max ? kInfinity : range.max});
  }
  const Histogram& histogram() const { return histogram_; }

 private:
  Histogram histogram_;
};

class MovingAverageObserver final : public HistogramObserver {
 public:
  explicit MovingAverageObserver(double momentum)
      : momentum_(static_cast<float>(momentum)) {}

 protected:
  void AddFinite(std::span<const float> batch, const RowStats& stats) override {
    HistogramObserver::AddFinite(batch, stats);
    if (count() == 0) {
      average_ = stats.extremes;
      return;
    }
    average_.min += momentum_ * (stats.extremes.min - average_.min);
    average_.max += momentum_ * (stats.extremes.max - average_.max);
  }
  Range FindRange() const override { return average_; }

 private:
  float momentum_;
  Range average_;
};

class PercentileObserver final : public HistogramObserver {
 public:
  explicit PercentileObserver(double percentile)
      : cut_((100 - percentile) / 200) {}

 protected:
  Range FindRange() const override {
    return WithinExtremes(histogram().Quantile(cut_),
                          histogram().Quantile(1 - cut_));
  }

 private:
  double cut_;  // share cut off either end
};

class MseObserver final : public HistogramObserver {
 public:
  explicit MseObserver(ActivationFormat format) : format_(format) {}

 protected:
  Range FindRange() const override {
    return FindRangeOfLeastError(histogram(), extremes(), format_);
  }

 private:
  ActivationFormat format_;
};

}  // namespace

std::unique_ptr<Observer> MakeObserver(const LayerSettings& settings,
                                       int bits) {
  switch (settings.observer) {
    case ObserverKind::kMinMax:
      break;
    case ObserverKind::kMovingAverage:
      return std::make_unique<MovingAverageObserver>(settings.momentum);
    case ObserverKind::kPercentile:
      return std::make_unique<PercentileObserver>(settings.percentile);
    case ObserverKind::kHistogramMse:
      return std::make_unique<MseObserver>(ActivationFormat{
          bits, settings.symmetric_activations ? ZeroPoint::kMiddle
                                               : ZeroPoint::kFree});
  }
  return std::make_unique<MinMaxObserver>();
}

}  // namespace hexllm::quant

#include "quant/clip_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hexllm::quant {
namespace {

constexpr int kPlaces = 128;

// Sums over the numbers below each bin edge, so that the error of clipping at
// any edge costs nothing to find.
class TailSums {
 public:
  explicit TailSums(const Histogram& histogram) : histogram_(histogram) {
    sums_.resize(Histogram::kBins + 1);
    for (int bin = 0; bin < Histogram::kBins; ++bin) {
      const auto i = static_cast<size_t>(bin);
      const auto count = static_cast<double>(histogram.counts()[i]);
      const double center = (histogram.Edge(bin) + histogram.Edge(bin + 1)) / 2;
      sums_[i + 1] = {sums_[i].count + count, sums_[i].x + count * center,
                      sums_[i].xx + count * center * center};
    }
  }

  // Of numbers below `x`, to the nearest bin edge.
  double CountBelow(double x) const { return At(x).count; }
  double SquaresBelow(double x) const { return DistanceTo(x, At(x)); }
  double SquaresAbove(double x) const {
    const Sums& all = sums_.back();
    const Sums& below = At(x);
    return DistanceTo(
        x, {all.count - below.count, all.x - below.x, all.xx - below.xx});
  }

 private:
  struct Sums {
    double count = 0, x = 0, xx = 0;
  };
  // The sum of (x_i - x)^2.
  static double DistanceTo(double x, const Sums& sums) {
    return std::max(sums.xx - 2 * x * sums.x + x * x * sums.count, 0.0);
  }
  const Sums& At(double x) const {
    const double width = histogram_.Edge(1) - histogram_.Edge(0);
    const double edge = std::nearbyint((x - histogram_.Edge(0)) / width);
    const double last = Histogram::kBins;
    return sums_[static_cast<size_t>(std::clamp(edge, 0.0, last))];
  }

  const Histogram& histogram_;
  std::vector<Sums> sums_;
};

struct Tails {
  double low;
  double high;
};

// The ends of `range`; infinite where nothing lies beyond (bins do not end at
// the extremes).
Tails TailsOf(Range range, Range extremes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {
      range.min <= extremes.min ? -kInfinity : static_cast<double>(range.min),
      range.max >= extremes.max ? kInfinity : static_cast<double>(range.max)};
}

double ExpectedError(const TailSums& sums, Tails tails, double step) {
  const double clipped_below =
      std::isinf(tails.low) ? 0 : sums.SquaresBelow(tails.low);
  const double clipped_above =
      std::isinf(tails.high) ? 0 : sums.SquaresAbove(tails.high);
  const double inside =
      sums.CountBelow(tails.high) - sums.CountBelow(tails.low);
  return inside * step * step / 12 + clipped_below + clipped_above;
}

float Place(float end, int index) {
  return end * (1 - static_cast<float>(index) / kPlaces);
}

}  // namespace

Range FindRangeOfLeastError(const Histogram& histogram, Range extremes,
                            ActivationFormat format) {
  const TailSums sums(histogram);
  Range outer = {std::min(extremes.min, 0.0f), std::max(extremes.max, 0.0f)};
  const bool middle = format.zero_point == ZeroPoint::kMiddle;
  if (middle) {
    outer.max = std::max(-outer.min, outer.max);
    outer.min = -outer.max;
  }
  const int low_places = middle || outer.min == 0 ? 1 : kPlaces;
  const int high_places = outer.max == 0 ? 1 : kPlaces;
  Range best = outer;
  double least = std::numeric_limits<double>::infinity();
  for (int high = 0; high < high_places; ++high) {
    for (int low = 0; low < low_places; ++low) {
      const Range range = {Place(outer.min, middle ? high : low),
                           Place(outer.max, high)};
      const auto step = static_cast<double>(ActivationScale(range, format));
      const double error = ExpectedError(sums, TailsOf(range, extremes), step);
      if (error >= least) continue;
      least = error;
      best = range;
    }
  }
  return best;
}

}  // namespace hexllm::quant

#include "quant/histogram.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "quant/row_stats.h"

namespace hexllm::quant {
namespace {

constexpr int kHalf = Histogram::kBins / 2;

// floor without the library call that old instruction sets need.
int Floor(double x) {
  const int truncated = static_cast<int>(x);
  return truncated - (x < truncated ? 1 : 0);
}

}  // namespace

void Histogram::WidenFor(float x) {
  int exponent = 0;
  std::frexp(static_cast<double>(x), &exponent);  // |x| < 2^exponent
  const double wanted = std::ldexp(1.0, exponent) / kHalf;
  if (wanted <= width_) return;
  const double ratio = wanted / width_;
  std::vector<uint64_t> merged(kBins, 0);
  for (int bin = 0; bin < kBins; ++bin) {
    const int target = kHalf + Floor((bin - kHalf) / ratio);
    merged[static_cast<size_t>(target)] += counts_[static_cast<size_t>(bin)];
  }
  counts_ = std::move(merged);
  width_ = wanted;
}

void Histogram::Add(std::span<const float> values) {
  const float magnitude = FiniteMagnitude(values);
  if (magnitude > 0) WidenFor(magnitude);
  const double per_width = 1 / width_;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const int bin = kHalf + Floor(static_cast<double>(value) * per_width);
    ++counts_[static_cast<size_t>(bin)];
    ++total_;
  }
}

double Histogram::CountBelow(double x) const {
  double below = 0;
  for (int bin = 0; bin < kBins && Edge(bin) < x; ++bin) {
    const double share = std::min((x - Edge(bin)) / width_, 1.0);
    below += share * static_cast<double>(counts_[static_cast<size_t>(bin)]);
  }
  return below;
}

double Histogram::Quantile(double fraction) const {
  HX_CHECK(total_ > 0);
  const double wanted = fraction * static_cast<double>(total_);
  double below = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    const auto count = static_cast<double>(counts_[static_cast<size_t>(bin)]);
    if (count > 0 && below + count >= wanted)
      return Edge(bin) + width_ * std::max(wanted - below, 0.0) / count;
    below += count;
  }
  return Edge(kBins);
}

double Histogram::FractionOutside(Range range) const {
  if (total_ == 0) return 0;
  const auto total = static_cast<double>(total_);
  const double inside = CountBelow(static_cast<double>(range.max)) -
                        CountBelow(static_cast<double>(range.min));
  return std::clamp(1 - inside / total, 0.0, 1.0);
}

}  // namespace hexllm::quant

// Counts of numbers in bins of equal width about 0. The width is a power of two
// that grows as greater magnitudes come: neighbouring bins are then merged.
// What a histogram holds depends on the numbers alone, not on their order.
// 64 KiB; used by observers (quant/observer.h).
//
// Example with 8 bins. 0.3 and -0.9 make the width 0.25:
//   bins from -1  -0.75  -0.5  -0.25  0  0.25  0.5  0.75
//              1    0      0     0    0    1    0     0
// Then 1.5 doubles it:
//   bins from -2  -1.5   -1   -0.5    0   0.5   1   1.5
//              0    0      1     0    1    0    0     1
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quant/range.h"

namespace hexllm::quant {

class Histogram {
 public:
  static constexpr int kBins = 8192;

  Histogram() : counts_(kBins, 0) {}

  // Numbers that are not finite are left out.
  void Add(std::span<const float> values);

  uint64_t total() const { return total_; }
  // By bin; bin i holds [Edge(i), Edge(i + 1)).
  std::span<const uint64_t> counts() const { return counts_; }
  double Edge(int bin) const { return (bin - kBins / 2) * width_; }

  // The number below which `fraction` (0 to 1) of all numbers lie, spreading
  // those of a bin evenly over it. Needs total() > 0 (checked).
  double Quantile(double fraction) const;
  // The share of numbers outside of the range, likewise; 0 when empty.
  double FractionOutside(Range range) const;

 private:
  // Doubles the width until x < Edge(kBins); x > 0 and finite.
  void WidenFor(float x);
  // How many lie below `x`.
  double CountBelow(double x) const;

  std::vector<uint64_t> counts_;
  uint64_t total_ = 0;
  // Until a number that is not 0 comes: smaller than any of those needs.
  double width_ = 0x1p-200;
};

}  // namespace hexllm::quant

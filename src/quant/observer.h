// Observers: what range an activation needs, from the numbers that calibration
// shows, one batch at a time and in fixed memory. Used by calibration, one
// observer per value. Not for weights (quant/weight_encoding.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "quant/range.h"
#include "quant/recipe.h"

namespace hexllm::quant {

// What was seen of one value.
struct Observation {
  Range range;         // as the observer's kind chooses it
  Range extremes;      // the least and greatest number
  uint64_t count = 0;  // of numbers
  double clipped = 0;  // share of numbers outside of `range`, 0 to 1
};

// Not thread-safe. Does not allocate after the first batch, but for the
// histogram's growth (kilobytes).
class Observer {
 public:
  virtual ~Observer() = default;
  // One batch: the elements of a value in one step. Moving averages weigh
  // batches, whatever their size; the others depend on the numbers alone.
  virtual void Add(std::span<const float> batch) = 0;
  // kBadInput naming the value `name`: when nothing was seen (an empty
  // calibration set), or a number was NaN or infinite. May be called at any
  // time.
  virtual Result<Observation> Finish(std::string_view name) const = 0;
};

// The observer that the settings of a layer ask for, for encodings of `bits` (8
// or 16).
std::unique_ptr<Observer> MakeObserver(const LayerSettings& settings, int bits);

}  // namespace hexllm::quant

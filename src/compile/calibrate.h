// Observes the activations of a model: runs its tapped float graphs
// (compile/tapped_run.h) and feeds every value that wants an encoding to an
// observer. Used by compile/quantize.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/file_cache.h"
#include "base/status.h"
#include "compile/tapped_run.h"
#include "models/model_source.h"
#include "quant/assign.h"
#include "quant/recipe.h"

namespace hexllm {

// What a calibration works on; borrowed.
struct CalibrationJob {
  const models::ModelSource& source;
  const quant::ResolvedRecipe& recipe;
  const TappedRun& run;
  // Where results are looked for and kept; null = nowhere.
  const FileCache* cache = nullptr;
  // Sees all taps too, if anything runs; may be empty.
  std::function<void(const TapView& tap)> on_tap = {};
};

struct Calibration {
  quant::Ranges ranges;
  // Estimated SQNR in dB of each layer's keys as u8 codes of one scale: the
  // power of what differs from token to token, over that of the rounding. A
  // channel that is large but the same for all tokens (k_proj biases) makes the
  // scale coarse and adds nothing to the former.
  std::map<int, double> key_sqnr;
};

// kBadInput naming the value where NaN or infinity appears.
Result<Calibration> Calibrate(const CalibrationJob& job);

}  // namespace hexllm

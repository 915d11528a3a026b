// Observes the activations of a model: runs its target-lowered float graphs on
// the CPU engine, in blocks with the KV cache, and feeds every value that wants
// an encoding to an observer. Used by compile/quantize. Weights stay in the
// mapped checkpoint.
#pragma once

#include <map>
#include <string>

#include "base/file_cache.h"
#include "base/progress.h"
#include "base/status.h"
#include "compile/calibration_set.h"
#include "models/model_source.h"
#include "quant/assign.h"
#include "quant/recipe.h"

namespace hexllm {

// What a calibration works on; borrowed.
struct CalibrationJob {
  const models::ModelSource& source;
  const quant::ResolvedRecipe& recipe;
  const TokenSequences& sequences;
  int threads = 0;  // 0 = one per physical core
  ProgressSink& progress;
  // Where results are looked for and kept; null = nowhere.
  const FileCache* cache = nullptr;
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

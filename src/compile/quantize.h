// Gives the graphs of a model their encodings as a recipe wants them. Used by
// compile/compiler, between building the graphs and lowering them.
#pragma once

#include <string>

#include "base/file_cache.h"
#include "base/progress.h"
#include "base/status.h"
#include "compile/calibration_set.h"
#include "compile/stand_in.h"
#include "ir/graph.h"
#include "models/model_source.h"
#include "quant/recipe.h"

namespace hexllm {

// What quantization works on; borrowed.
struct QuantizeJob {
  const models::ModelSource& source;
  const TextAssets& text;
  const CalibrationOptions& calibration;
  int threads = 0;      // of calibration; 0 = one per physical core
  int64_t context = 0;  // C: calibration sequences are no longer
  ProgressSink& progress;
  // When not null: in the place of a calibration, for graphs that never run.
  const StandIns* stand_ins = nullptr;
  bool has_half = true;              // the chip computes in half precision
  const FileCache* cache = nullptr;  // as CalibrationJob has it
};

// `recipe`, which the user did not name, fitted to the model's linears
// (quant::FitRecipe); what that changed goes to `progress`. Errors of
// models::BuildDecoder.
Result<quant::Recipe> FitToModel(const quant::Recipe& recipe,
                                 const models::ModelSource& source,
                                 ProgressSink& progress);

// `recipe` with its rules applied to the linears of `module`, whose warnings go
// to `progress`. Errors of FindRecipe and ResolveRecipe.
Result<quant::ResolvedRecipe> ResolveFor(const ir::Module& module,
                                         const quant::Recipe& recipe,
                                         ProgressSink& progress);

// True when a layer's activations have ranges that are observed.
bool NeedsRanges(const quant::ResolvedRecipe& recipe);

// kUsage for a calibration that a recipe without ranges has no use for.
Status RefuseCalibration(const quant::ResolvedRecipe& recipe,
                         const CalibrationOptions& calibration);

// True when the recipe's graphs run as the target lowers them, every value
// rounded to an encoding; false for the float graph and the CPU's own schemes.
bool IsStatic(const quant::Recipe& recipe);

// Encodings of `module`: of the graphs as built for a recipe that is not
// static, of the target-lowered ones for one that is; the latter calibrates.
// Warnings and decisions go to `progress`. Returns the sequences that it
// calibrated on, none without a calibration. kBadInput for NaN or infinity in
// weights or activations and for an empty calibration set, kUsage for a
// calibration that nothing needs.
Result<TokenSequences> Quantize(ir::Module& module,
                                const quant::ResolvedRecipe& recipe,
                                const QuantizeJob& job);

}  // namespace hexllm

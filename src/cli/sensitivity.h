// Measures a model's sensitivities: runs the float graph with one layer rounded
// at a time (compile/layer_probe) and compares the logits (eval/compare). Used
// by `recipe search` and `compile --quant-recipe-suggestion`.
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "compile/compiler.h"
#include "quant/recipe.h"
#include "quant/sensitivity.h"

namespace hexllm::cli {

// Of all linears of the checkpoint at `model`, in graph order, with `base` as
// the recipe. Of `options`: source, calibration, threads. Costs a run of the
// float graph on 128 tokens for each layer. kUsage for a base whose activations
// have no static ranges; errors of LayerProbe and ResolveRecipe, kBadInput for
// logits that are not finite.
Result<std::vector<quant::LayerSensitivity>> MeasureSensitivities(
    const std::string& model, const CompileOptions& options,
    const quant::Recipe& base, ProgressSink& progress);

}  // namespace hexllm::cli

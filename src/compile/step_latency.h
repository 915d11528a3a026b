// What a decode step takes on a phone with one recipe or another, in the
// opinion of the vendor's compiler (compile/estimate_graphs.h): of the whole
// step, and of single linears. Nothing is measured on a device. Used by
// cli/ (recipe search).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "compile/compiler.h"
#include "compile/estimate_graphs.h"
#include "quant/recipe.h"

namespace hexllm {

class StepLatency {
 public:
  // Steps of the `kv` graph of the checkpoint at `model_path`, compiled as
  // `options` say, for the only chip of `job`. All are borrowed.
  StepLatency(const std::string& model_path, const CompileOptions& options,
              const EstimateJob& job)
      : model_path_(model_path), options_(options), job_(job) {}

  // Microseconds of the whole step. Errors of BuildWithStandIns and
  // EstimateGraphs.
  Result<double> WholeStep(const quant::Recipe& recipe,
                           ProgressSink& progress) const;

  // Microseconds for each weight of a linear, when all linears are alike: those
  // of one layer, with what stands between them, by their weights; and those of
  // the head.
  struct Unit {
    double layer_us = 0;
    double head_us = 0;
  };
  // Estimates the first layer, and the last one with the head. `recipe` makes
  // all linears alike. Errors as above.
  Result<Unit> OfEachWeight(const quant::Recipe& recipe,
                            ProgressSink& progress) const;

 private:
  Result<HtpGraphs> Build(const quant::Recipe& recipe, int64_t shards) const;

  const std::string& model_path_;
  const CompileOptions& options_;
  const EstimateJob& job_;
};

}  // namespace hexllm

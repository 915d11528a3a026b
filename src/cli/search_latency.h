// The latencies of `recipe search --budget-ms`: what linears take in each way,
// and what a step takes with a recipe. All of it is the opinion of the vendor's
// compiler (compile/step_latency.h).
#pragma once

#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "compile/step_latency.h"
#include "quant/recipe.h"
#include "quant/sensitivity.h"

namespace hexllm::cli {

struct SearchWish;

class SearchLatency {
 public:
  // `wish` is borrowed.
  explicit SearchLatency(const SearchWish& wish);

  // What would fail later: see CheckEstimate.
  Status Check() const { return CheckEstimate(job_); }

  // Fills LayerWay::us, so that their sums are steps of whole models, scaled to
  // what the step with `base` takes, which is returned. Estimates two layers
  // for each scheme and block.
  Result<double> Fill(const quant::Recipe& base,
                      std::vector<quant::LayerSensitivity>& layers,
                      ProgressSink& progress) const;

  // Microseconds.
  Result<double> WholeStep(const quant::Recipe& recipe,
                           ProgressSink& progress) const;

 private:
  const SearchWish& wish_;
  EstimateJob job_;
};

}  // namespace hexllm::cli

// What quant/weight_search.h works with: sampled inputs, the CPU engine's
// kernels, threads and a cache. Used by compile/quantize.
#pragma once

#include <set>
#include <string>

#include "base/thread_pool.h"
#include "compile/layer_inputs.h"

namespace hexllm {

class WeightTools {
 public:
  // For the linears of `module` that `layers` names. Borrows what the other
  // arguments name, which must outlive this.
  WeightTools(const ir::Module& module, const std::set<std::string>& layers,
              const TappedRun& run, const Checkpoint& checkpoint,
              const FileCache* cache);
  WeightTools(const WeightTools&) = delete;
  WeightTools& operator=(const WeightTools&) = delete;

  SampledInputs& inputs() { return inputs_; }
  const quant::SearchContext& context() const { return context_; }

 private:
  ThreadPool pool_;
  SampledInputs inputs_;
  quant::SearchContext context_;
};

}  // namespace hexllm

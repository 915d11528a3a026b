// What a search or a suggestion starts from: a recipe and its size. Used by
// cli/cmd_recipe_search and cli/suggest.
#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "base/status.h"
#include "compile/compiler.h"
#include "quant/recipe.h"

namespace hexllm::cli {

struct SearchBase {
  quant::Recipe recipe;
  uint64_t weight_bytes = 0;  // as an artifact for the HTP has them
  std::string model_name;
};

// The recipe that `options` give the HTP's artifact of the checkpoint at
// `model`, the model's own when they name none. kUsage, in the name of `flag`,
// unless its activations have static ranges; errors of BuildWithStandIns.
Result<SearchBase> FindSearchBase(const std::string& model,
                                  const CompileOptions& options,
                                  std::string_view flag,
                                  ProgressSink& progress);

// The same of `recipe`, for its size.
Result<uint64_t> WeightBytesWith(const std::string& model,
                                 const CompileOptions& options,
                                 const quant::Recipe& recipe);

}  // namespace hexllm::cli

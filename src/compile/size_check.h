// Whether a target can hold a model and has the memory to compile it, known
// from shapes and the recipe alone. Used by compile/compiler before it
// calibrates.
#pragma once

#include "base/status.h"
#include "compile/compiler.h"
#include "compile/graph_plan.h"
#include "models/model_source.h"
#include "quant/recipe.h"

namespace hexllm {

// Borrowed.
struct SizeJob {
  const models::ModelSource& source;
  const quant::ResolvedRecipe& recipe;
  const CompileOptions& options;
  const GraphPlan& plan;
};

// kUnsupported when a part of the model is too large for the target or for
// options.target.max_memory, naming the least num_sharding that fits.
Status CheckSizes(const SizeJob& job);

}  // namespace hexllm

// Finds out in seconds whether the target's compiler takes a model: compiles
// those of its layers that differ, one by one, at each step size, with ranges
// that stand in for a calibration and a few rows of table and head. Used by
// compile/compiler before it calibrates. Says nothing about numbers.
#pragma once

#include "base/status.h"
#include "compile/compiler.h"
#include "compile/graph_plan.h"
#include "compile/quantize.h"
#include "quant/recipe.h"

namespace hexllm {

// What a probe works on; borrowed.
struct ProbeJob {
  const quant::ResolvedRecipe& recipe;
  const CompileOptions& options;
  const GraphPlan& plan;
  const QuantizeJob& quantize;  // what is to be done to the whole model
};

// The target's errors: kUnsupported names graph ("kv_s3": layer 3), node, op,
// types and generation. Nothing is probed of targets that take every graph.
Status ProbeTarget(const ProbeJob& job);

}  // namespace hexllm

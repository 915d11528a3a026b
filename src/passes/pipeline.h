// The passes of each target, in order, and their runner. Used by compile/ and
// by tests. Not here: common subexpressions. The graphs that models/ build
// share masks and rope tables as inputs and weights by id; nothing is computed
// twice, so such a pass would find nothing to do (tests:
// PipelineTest.DecodersHaveNoCommonSubexpressions).
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "passes/pass.h"

namespace hexllm {

// What RunPipeline shows its caller.
struct PassStage {
  int index;  // 0 = the module as given, 1 = after the first pass, ...
  std::string_view pass;  // "input", or the pass that just ran
};

struct PipelineOptions {
  // Called before the first pass and after each, with a verified module; an
  // error stops the pipeline. May be empty.
  std::function<Status(const PassStage& stage, const ir::Module& module)> dump =
      {};
};

// Every pass, in alphabetical order. Target pipelines are made of these.
std::span<const Pass> AllPasses();

// The passes of `target` in the order they run. kUnsupported for a target
// without pipeline, naming the known ones.
Result<std::span<const Pass>> PassesOf(std::string_view target);

// Runs the passes of `target`, verifying between all of them. kBadInput when
// the given module is not valid; a pass that leaves an invalid one is a bug of
// ours and ends the process. After an error the module is in an unspecified
// state.
Status RunPipeline(ir::Module& module, std::string_view target,
                   const PipelineOptions& options);

}  // namespace hexllm

// Stages side by side on a prompt: `hexllm eval --sqnr` and `--bisect`.
#pragma once

#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "cli/eval_flags.h"
#include "cli/eval_outputs.h"

namespace hexllm::cli {

// kUsage for flags that have no use for each other; before anything is
// compiled.
Status CheckComparisons(const EvalFlags& flags);

// What stages are compared on.
struct PromptPlan {
  std::vector<int32_t> ids;
  uint32_t context = 0;  // C and T of what runs it
  uint32_t block = 0;
};

// Reads the prompt, and checks that model and artifact can run it; before
// anything takes long. kUsage for ids that do not fit, for an artifact without
// what the flags want of it.
Result<PromptPlan> PlanPrompt(const EvalFlags& flags, ProgressSink& progress);

// Compares each stage but fp as the flags say, printing a line for each.
// Models are compiled anew, with their inner values as outputs, for the context
// that tasks have, on which their calibration depends; artifacts are taken as
// they are and show layers only when compiled with --taps.
Status RunComparisons(const EvalFlags& flags, const PromptPlan& prompt,
                      EvalFiles& files, EvalResult& result,
                      ProgressSink& progress);

}  // namespace hexllm::cli

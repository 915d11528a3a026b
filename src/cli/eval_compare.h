// Stages side by side on a prompt: `hexllm eval --sqnr` and `--bisect`.
#pragma once

#include "base/progress.h"
#include "base/status.h"
#include "cli/eval_flags.h"
#include "cli/eval_outputs.h"

namespace hexllm::cli {

// kUsage for flags that have no use for each other; before anything is
// compiled.
Status CheckComparisons(const EvalFlags& flags);

// Compares each stage but fp as the flags say, printing a line for each.
// Models are compiled anew, with their inner values as outputs; artifacts are
// taken as they are and show layers only when compiled with --taps. Does
// nothing without --sqnr and --bisect.
Status RunComparisons(const EvalFlags& flags, EvalFiles& files,
                      EvalResult& result, ProgressSink& progress);

}  // namespace hexllm::cli

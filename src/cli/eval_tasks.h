// Runs the tasks of `hexllm eval` on its stages.
#pragma once

#include "base/progress.h"
#include "base/status.h"
#include "cli/eval_flags.h"
#include "cli/eval_outputs.h"

namespace hexllm::cli {

// kUsage for tasks that contradict each other or the flags, and for unknown
// ones; before anything is compiled.
Status CheckTasks(const EvalFlags& flags);

// Runs every task on every stage, printing a line for each as it is done.
// Errors of eval/task.h, eval/run.h and OpenEvalStage.
Status RunTasks(const EvalFlags& flags, EvalFiles& files, EvalResult& result,
                ProgressSink& progress);

}  // namespace hexllm::cli

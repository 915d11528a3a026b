// The files that `hexllm eval` writes, opened before the work.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/status.h"
#include "cli/eval_flags.h"
#include "eval/result_json.h"

namespace hexllm::cli {

class EvalFiles {
 public:
  // kUsage for a name that is `model`, one of `inputs` or another output's;
  // kEnvironment when one cannot be made.
  static Result<EvalFiles> Open(const EvalOutputs& outputs,
                                const std::string& model,
                                const std::vector<std::string>& inputs);

  // Prints now. With files, an output that takes nothing is an error of Write:
  // they are not to be lost with it.
  Status Say(std::string_view text);
  // All files, and then what Say kept back.
  Status Write(const EvalResult& result, WithItems with_items);

 private:
  using File = std::optional<OutputFile>;
  EvalFiles(File json, File csv, File report)
      : json_(std::move(json)),
        csv_(std::move(csv)),
        report_(std::move(report)) {}

  File json_, csv_, report_;
  Status said_ = OkStatus();
};

}  // namespace hexllm::cli

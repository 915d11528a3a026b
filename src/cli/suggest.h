// `compile --quant-recipe-suggestion`: how sensitive each layer is, and recipes
// that the one that was compiled with could be replaced by. Used by
// cli/cmd_compile.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/progress.h"
#include "base/status.h"
#include "compile/compiler.h"

namespace hexllm::cli {

// Files beside the artifact, named after the model, for which see
// docs/recipe-search.md. They appear when Commit is called, or not at all; what
// an earlier run suggested, as its description says, and this one does not goes
// then.
class Suggestions {
 public:
  // Measures the layers of the checkpoint at `model` with the recipe that
  // `options` mean, judges the recipes that follow, and shows them on stdout.
  // `artifact` is the output of the compilation, `inputs` what it reads beside
  // the model. kUsage for a recipe without static ranges, and where the files
  // would lie on what the command reads or writes otherwise; errors of
  // FindSearchBase, MeasureSensitivities, HeldOut and of the disk.
  static Result<Suggestions> Make(const std::string& model,
                                  const std::string& artifact,
                                  const CompileOptions& options,
                                  const std::vector<std::string>& inputs,
                                  ProgressSink& progress);

  // kEnvironment for what cannot be written or removed.
  Status Commit(ProgressSink& progress);

 private:
  std::vector<OutputFile> files_;   // written
  std::vector<std::string> stale_;  // paths
};

}  // namespace hexllm::cli

// What `hexllm bench --estimate` does for a checkpoint and for an artifact. The
// estimate itself is compile/estimate_graphs.
#pragma once

#include <string>

#include "artifact/artifact.h"
#include "base/progress.h"
#include "base/status.h"
#include "compile/compiler.h"
#include "compile/estimate_graphs.h"
#include "compile/stand_in.h"

namespace hexllm {

struct EstimateOptions {
  // How the model is compiled; target and calibration have no say.
  CompileOptions compile = {};
  StandIns stand_ins = {};
  EstimateJob job = {};
  // When not null, what the checkpoint's graphs must be like: EstimateModel
  // fails with kUsage for another model than the artifact was made from.
  const artifact::Manifest* expected = nullptr;
  // When not empty: the compiler's schedules go there, all in one Chrome trace
  // (htp/trace_merge.h).
  std::string trace_path = {};
};

// Builds the graphs of the checkpoint at `model_path` and estimates them for
// each SoC. Calibrates nothing: ranges are stand-ins. Errors of CheckEstimate
// (before any work), BuildWithStandIns and EstimateGraphs.
Result<ModelEstimate> EstimateModel(const std::string& model_path,
                                    const EstimateOptions& options,
                                    ProgressSink& progress);

// The estimate that `artifact` was compiled with. kUsage when it holds none,
// kBadInput when it is damaged.
Result<ModelEstimate> StoredEstimate(const artifact::Artifact& artifact);

// The SoC that an artifact was compiled for, as its context binaries say.
// `lib_dir`: the folder of libQnnSystem.so. kUsage when it has none.
Result<std::string> SocOf(const artifact::Artifact& artifact,
                          const std::string& lib_dir);

// Sets the options so that EstimateModel gets the graphs of `artifact`: its
// recipe, lengths, width of K. kUsage for an artifact that is not for the HTP.
Status MatchArtifact(const artifact::Artifact& artifact,
                     EstimateOptions& options);

}  // namespace hexllm

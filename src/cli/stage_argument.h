// Which numbers of a model a command works on: the flags --stage(s), --recipe,
// --model, --soc and --calib-*, and the artifact that they ask for.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "backend/engines.h"
#include "base/progress.h"
#include "base/status.h"
#include "compile/compiler.h"

namespace hexllm::cli {

// --recipe and --calib-*, as they are typed.
struct QuantFlags {
  std::string recipe;
  std::vector<std::string> calib_tokens;
  CalibrationOptions calibration;
};

// --soc.
void AddSocFlag(CLI::App& app, TargetOptions& target);
// Puts the threads and libraries of the engine into `options`.
void SetEngine(const BackendOptions& engine, CompileOptions& options);

void AddRecipeFlags(CLI::App& app, QuantFlags& flags);
// --data-dir, for commands that read texts of tasks for calibration alone.
void AddDataDirFlag(CLI::App& app, std::string& dir);

// Puts the flags into `options`. Errors of ParseIds.
Status ApplyQuantFlags(const QuantFlags& flags, CompileOptions& options);

// The files that these flags read, beside those of the model.
std::vector<std::string> FilesOf(const QuantFlags& flags,
                                 const models::SourceOptions& source);

// A model or artifact, and how to compile what has to be compiled.
struct StageRequest {
  std::string path;        // the command's MODEL|FILE.hxl
  std::string checkpoint;  // --model: the checkpoint of an artifact; may be ""
  CompileOptions options;
};

// kUsage for --model (`checkpoint`) when the command's MODEL|FILE.hxl, `path`,
// is no artifact.
Status CheckCheckpointFlag(const std::string& path,
                           const std::string& checkpoint);

// kUsage for --model (`checkpoint`) when none of `stages` of the artifact at
// `path` needs it: its own one ("" or by name) does not. Errors of opening it.
Status CheckCheckpointNeeded(const std::string& path,
                             const std::string& checkpoint,
                             std::span<const std::string> stages);

// kUsage for an unknown stage; "" is fine.
Status CheckStage(const std::string& stage);

// Whether `stage` can be opened, as far as that shows before anything is
// compiled: kUsage as OpenStage, errors of opening an artifact and of its
// engine (kEnvironment when its libraries are not there).
Status CheckStageOpens(const StageRequest& request, const std::string& stage,
                       const BackendOptions& engine);

// Whether `stage`, which CheckStageOpens passed, can be compiled, as far as
// CheckCompile says; kBadInput when --model is another model.
Status CheckStageCompiles(const StageRequest& request,
                          const std::string& stage);

// The artifact of `stage` ("fp", "qdq" or "device", which is the HTP on x86's
// simulator; "" = an artifact as it is, of a model
// the float graph, or with a recipe its quantized one). The checkpoint of an
// artifact gives fp, and of a device one qdq, as the artifact was quantized.
// kUsage when an artifact is of another stage and --model is missing, and for
// an unknown stage; kBadInput when --model is another model than the
// artifact's, or is quantized otherwise (CheckSameEncodings).
Result<std::shared_ptr<const artifact::Artifact>> OpenStage(
    const StageRequest& request, const std::string& stage,
    ProgressSink& progress);

}  // namespace hexllm::cli

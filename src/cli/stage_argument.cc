#include "cli/stage_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "backend/htp/soc_table.h"
#include "base/quote.h"
#include "cli/ids_argument.h"
#include "cli/model_argument.h"
#include "compile/requantize.h"
#include "quant/recipe.h"

namespace hexllm::cli {
namespace {

Result<Stage> ParseStage(const std::string& text) {
  if (text == "fp") return Stage::kFloat;
  if (text == "qdq") return Stage::kQdq;
  if (text == "device") return Stage::kDevice;
  return Error{
      ErrorCode::kUsage,
      fmt::format("stage: expected fp, qdq or device, found {}", Quoted(text))};
}

CompileOptions ForStage(CompileOptions options, Stage stage) {
  options.stage = stage;
  if (stage == Stage::kDevice) {
    options.target.name = "htp";
    options.target.use = htp::ContextUse::kSimulator;
  }
  return options;
}

// How a checkpoint is compiled for `stage` as typed.
Result<CompileOptions> CheckpointOptions(const StageRequest& request,
                                         const std::string& stage) {
  if (stage.empty() && !request.options.recipe.empty())
    return ForStage(request.options, Stage::kTarget);
  HX_ASSIGN_OR_RETURN(const Stage parsed,
                      ParseStage(stage.empty() ? "fp" : stage));
  return ForStage(request.options, parsed);
}

// True when `stage` can be made from the checkpoint of an artifact of stage
// `has`.
bool IsMadeAgain(const std::string& has, const std::string& stage) {
  return stage == "fp" || (stage == "qdq" && has == "device");
}

// kUsage unless an artifact of stage `has` can show `stage`: its own one, or
// one that its checkpoint gives.
Status CheckArtifactStage(const StageRequest& request, const std::string& has,
                          const std::string& stage) {
  const bool made = IsMadeAgain(has, stage);
  if (stage.empty() || stage == has || (made && !request.checkpoint.empty()))
    return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("{}: expected an artifact of stage {}, found {}{}",
                           request.path, stage, has,
                           made ? "; give its checkpoint with --model" : "")};
}

// kBadInput unless the checkpoint's id, `found`, is that of `artifact`.
Status CheckSameModel(const artifact::Artifact& artifact, uint64_t found,
                      const std::string& checkpoint) {
  const uint64_t expected = artifact.manifest().model_id;
  if (expected == found) return OkStatus();
  return Error{
      ErrorCode::kBadInput,
      fmt::format("--model {}: expected the checkpoint of {}, model {:016x}, "
                  "found model {:016x}",
                  checkpoint, artifact.path(), expected, found)};
}

// How the checkpoint of `artifact` is compiled for a stage that is made again.
Result<CompileOptions> OptionsAgain(const artifact::Artifact& artifact,
                                    const StageRequest& request,
                                    const std::string& stage) {
  HX_ASSIGN_OR_RETURN(const Stage parsed, ParseStage(stage));
  HX_ASSIGN_OR_RETURN(CompileOptions options,
                      stage == "qdq"
                          ? RequantizeOptions(artifact, request.options)
                          : FloatOptions(artifact, request.options));
  return ForStage(std::move(options), parsed);
}

// An artifact has one stage; others need its checkpoint.
Result<std::shared_ptr<const artifact::Artifact>> OpenArtifactStage(
    const StageRequest& request, const std::string& stage,
    ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(auto artifact, artifact::Artifact::Open(request.path));
  const std::string& has = artifact->manifest().stage;
  HX_RETURN_IF_ERROR(CheckArtifactStage(request, has, stage));
  if (stage.empty() || stage == has) return artifact;
  HX_ASSIGN_OR_RETURN(const CompileOptions options,
                      OptionsAgain(*artifact, request, stage));
  HX_ASSIGN_OR_RETURN(auto compiled,
                      CompileToMemory(request.checkpoint, options, progress));
  HX_RETURN_IF_ERROR(CheckSameModel(*artifact, compiled->manifest().model_id,
                                    request.checkpoint));
  if (stage == "qdq")
    HX_RETURN_IF_ERROR(CheckSameEncodings(*artifact, *compiled));
  return compiled;
}

}  // namespace

void AddSocFlag(CLI::App& app, TargetOptions& target) {
  const auto known = [](const std::string& name) {
    const auto soc = htp::FindSoc(name);
    return soc.ok() ? std::string() : soc.error().message;
  };
  app.add_option(
         "--soc", target.soc,
         "The chip that htp compiles for, and whose rounding the qdq stage has")
      ->each([&target](const std::string&) { target.soc_is_named = true; })
      ->check(CLI::Validator(known, ""))
      ->type_name("NAME");
}

void SetEngine(const BackendOptions& engine, CompileOptions& options) {
  options.threads = engine.threads;
  options.target.qnn_lib_dir = QnnLibDir(engine.qnn_lib_dir);
}

void AddRecipeFlags(CLI::App& app, QuantFlags& flags) {
  CalibrationOptions& calibration = flags.calibration;
  app.add_option("--recipe", flags.recipe,
                 "Quantization: a name of `hexllm recipe list`, or a JSON file")
      ->type_name("NAME|FILE");
  app.add_option("--calib-prompt", calibration.prompts,
                 "Calibrate on this user's message; may be given again")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--calib-tokens", flags.calib_tokens,
                 "Calibrate on these ids: 1,2,3 or FILE.safetensors:TENSOR")
      ->type_name("IDS")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--calib-samples", calibration.samples_path,
                 "Calibrate on the chats of a JSON file")
      ->type_name("FILE");
  app.add_option("--calib-tasks", calibration.tasks,
                 "Calibrate on the text of a task (needs --data-dir)")
      ->type_name("wikitext");
  app.add_option("--calib-limit", calibration.limit,
                 "Most sequences of each calibration source")
      ->check(WholeNumber(1, INT64_MAX))
      ->type_name("N");
}

void AddDataDirFlag(CLI::App& app, std::string& dir) {
  app.add_option("--data-dir", dir, "The folder that holds wikitext-2/test.txt")
      ->type_name("DIR");
}

Status ApplyQuantFlags(const QuantFlags& flags, CompileOptions& options) {
  options.recipe = flags.recipe;
  options.calibration = flags.calibration;
  if (!flags.calibration.data_dir.empty() && flags.calibration.tasks.empty()) {
    return Error{ErrorCode::kUsage,
                 "--data-dir: expected with --calib-tasks, found alone"};
  }
  for (const std::string& text : flags.calib_tokens) {
    HX_ASSIGN_OR_RETURN(std::vector<int32_t> ids, ParseIds(text));
    options.calibration.ids.push_back(std::move(ids));
  }
  return OkStatus();
}

std::vector<std::string> FilesOf(const QuantFlags& flags,
                                 const models::SourceOptions& source) {
  std::vector<std::string> files = {source.config_path, source.params_path,
                                    source.tokenizer_path,
                                    flags.calibration.samples_path};
  if (!flags.calibration.data_dir.empty())
    files.push_back(WikitextPath(flags.calibration.data_dir));
  if (quant::IsRecipeFile(flags.recipe)) files.push_back(flags.recipe);
  for (const std::string& ids : flags.calib_tokens)
    files.push_back(IdsFile(ids));
  return files;
}

Status CheckCheckpointFlag(const std::string& path,
                           const std::string& checkpoint) {
  if (checkpoint.empty()) return OkStatus();
  if (IsArtifact(path)) return RefuseArtifact(checkpoint);
  return Error{ErrorCode::kUsage,
               fmt::format("--model: expected with an artifact only; {} is a "
                           "checkpoint itself",
                           path)};
}

Status CheckCheckpointNeeded(const std::string& path,
                             const std::string& checkpoint,
                             std::span<const std::string> stages) {
  if (checkpoint.empty() || !IsArtifact(path)) return OkStatus();
  HX_ASSIGN_OR_RETURN(const auto artifact, artifact::Artifact::Open(path));
  const std::string& own = artifact->manifest().stage;
  const bool needed = std::any_of(
      stages.begin(), stages.end(),
      [&](const auto& stage) { return !stage.empty() && stage != own; });
  if (needed) return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("--model: expected with a stage that is made from "
                           "the checkpoint, found the stage {} of {} itself",
                           own, path)};
}

Status CheckStage(const std::string& stage) {
  return stage.empty() ? OkStatus() : ParseStage(stage).status();
}

Status CheckStageOpens(const StageRequest& request, const std::string& stage,
                       const BackendOptions& engine) {
  if (IsArtifact(request.path)) {
    HX_ASSIGN_OR_RETURN(const auto artifact,
                        artifact::Artifact::Open(request.path));
    const std::string& has = artifact->manifest().stage;
    HX_RETURN_IF_ERROR(CheckArtifactStage(request, has, stage));
    if (stage == has) return CreateEngineFor(*artifact, engine).status();
  }
  BackendOptions options = engine;
  options.qnn_lib_dir = QnnLibDir(engine.qnn_lib_dir);
  return CreateEngine(stage == "device" ? "htp" : "cpu", options).status();
}

Status CheckStageCompiles(const StageRequest& request,
                          const std::string& stage) {
  if (!IsArtifact(request.path)) {
    HX_ASSIGN_OR_RETURN(const CompileOptions options,
                        CheckpointOptions(request, stage));
    return CheckCompile(request.path, options).status();
  }
  HX_ASSIGN_OR_RETURN(const auto artifact,
                      artifact::Artifact::Open(request.path));
  if (stage.empty() || stage == artifact->manifest().stage) return OkStatus();
  HX_ASSIGN_OR_RETURN(const CompileOptions options,
                      OptionsAgain(*artifact, request, stage));
  HX_ASSIGN_OR_RETURN(const uint64_t id,
                      CheckCompile(request.checkpoint, options));
  return CheckSameModel(*artifact, id, request.checkpoint);
}

Result<std::shared_ptr<const artifact::Artifact>> OpenStage(
    const StageRequest& request, const std::string& stage,
    ProgressSink& progress) {
  HX_RETURN_IF_ERROR(CheckStage(stage));
  HX_RETURN_IF_ERROR(CheckCheckpointFlag(request.path, request.checkpoint));
  if (IsArtifact(request.path))
    return OpenArtifactStage(request, stage, progress);
  HX_ASSIGN_OR_RETURN(const CompileOptions options,
                      CheckpointOptions(request, stage));
  return CompileToMemory(request.path, options, progress);
}

}  // namespace hexllm::cli

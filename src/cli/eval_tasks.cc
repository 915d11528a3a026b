#include "cli/eval_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "cli/eval_stages.h"
#include "cli/output.h"
#include "compile/artifact_parts.h"
#include "eval/journal.h"
#include "eval/report_text.h"
#include "eval/run.h"
#include "runtime/artifact_text.h"

namespace hexllm::cli {
namespace {

TaskOptions OptionsFor(const EvalFlags& flags, uint32_t window) {
  return {.data_dir = flags.data_dir,
          .window = window,
          .stride = flags.stride,
          .limit = flags.limit,
          .num_fewshot = flags.num_fewshot};
}

// Bytes of a file; 0 for a folder.
uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

// What --resume must find unchanged, as far as it is known before models are
// read; the rest is in the digests of its items.
Json DescribeRun(const EvalFlags& flags, uint32_t window) {
  std::error_code error;
  Json run = {
      {"hexllm_eval", ProducerName()},
      {"model", std::filesystem::weakly_canonical(flags.model, error).string()},
      {"model_bytes", SizeOf(flags.model)},
      {"checkpoint", flags.checkpoint},
      {"soc", flags.target.soc},
      {"recipe", flags.quant.recipe},
      {"calib_prompts", flags.quant.calibration.prompts},
      {"calib_tokens", flags.quant.calib_tokens},
      {"calib_samples", flags.quant.calibration.samples_path},
      {"calib_tasks", flags.quant.calibration.tasks},
      {"set", flags.source.overrides},
      {"tasks", flags.tasks},
      {"data_dir", flags.data_dir},
      {"stages", flags.stages},
      {"mode", flags.mode},
      {"window", window},
      {"num_fewshot", flags.num_fewshot},
      {"shard", ShardText(flags.shard)}};
  // Items do not change with --limit, but wikitext-fixed's stride does.
  run["stride"] = flags.stride.value_or(window);
  run["calib_limit"] = flags.quant.calibration.limit.value_or(0);
  return run;
}

Result<std::vector<Task>> LoadTasks(const EvalFlags& flags,
                                    const artifact::Artifact& artifact,
                                    uint32_t window, ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const Tokenizer tokenizer, TokenizerOf(artifact));
  HX_ASSIGN_OR_RETURN(const TaskTokens tokens,
                      TaskTokensOf(artifact.manifest(), tokenizer));
  std::vector<Task> tasks;
  for (const std::string& name : flags.tasks) {
    HX_ASSIGN_OR_RETURN(
        Task task, LoadTask(name, OptionsFor(flags, window), tokens, progress));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

TaskResult HeadOf(const Task& task) {
  return {.name = task.name,
          .kind = task.kind,
          .window = task.window,
          .stride = task.stride,
          .num_fewshot = task.num_fewshot,
          .bos = task.bos,
          .items = task.items.size(),
          .digest = DigestOfItems(task)};
}

// Adds one stage to `result`.
Status RunOnStage(const OpenedStage& opened, const Task& task,
                  const RunOptions& options, TaskResult& result,
                  ProgressSink& progress) {
  const artifact::Manifest& manifest = opened.artifact->manifest();
  StageResult measured{.stage = manifest.stage,
                       .recipe = manifest.recipe,
                       .weight_bytes = manifest.weight_bytes,
                       .digest = DigestToHex(options.identity)};
  HX_ASSIGN_OR_RETURN(measured.items,
                      RunTask(*opened.session, task, options, progress));
  // A shard may have no items.
  if (!measured.items.empty())
    measured.figures = FiguresOf(task.kind, measured.items);
  result.stages.push_back(std::move(measured));
  return OkStatus();
}

}  // namespace

Status CheckTasks(const EvalFlags& flags) {
  std::set<std::string> names;
  for (const std::string& name : flags.tasks) {
    HX_RETURN_IF_ERROR(CheckTask(
        name, OptionsFor(flags, flags.window.value_or(kDefaultWindow))));
    if (names.insert(std::filesystem::path(name).stem().string()).second)
      continue;
    return Error{
        ErrorCode::kUsage,
        fmt::format("--tasks: expected tasks of different names, found "
                    "{} twice",
                    name)};
  }
  return OkStatus();
}

Status RunTasks(const EvalFlags& flags, EvalFiles& files, EvalResult& result,
                ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const uint32_t window, WindowOf(flags));
  std::optional<Journal> journal;
  if (!flags.resume.empty()) {
    HX_ASSIGN_OR_RETURN(
        Journal opened,
        Journal::Open(flags.resume, DescribeRun(flags, window)));
    journal.emplace(std::move(opened));
  }
  std::vector<Task> tasks;
  // Without --stages: the one that model, artifact and recipe mean.
  const std::vector<std::string> stages =
      flags.stages.empty() ? std::vector<std::string>{""} : flags.stages;
  for (const std::string& stage : stages) {
    HX_ASSIGN_OR_RETURN(
        const OpenedStage opened,
        OpenEvalStage(flags, {.stage = stage, .context = window}, progress));
    const artifact::Manifest& manifest = opened.artifact->manifest();
    if (tasks.empty()) {
      HX_ASSIGN_OR_RETURN(tasks,
                          LoadTasks(flags, *opened.artifact, window, progress));
      result.model = manifest.model_name;
      result.model_id = fmt::format("{:016x}", manifest.model_id);
      for (const Task& task : tasks) result.tasks.push_back(HeadOf(task));
    }
    AddRecipe(*opened.artifact, result);
    const Digest identity = IdentityOf(*opened.artifact);
    for (size_t t = 0; t < tasks.size(); ++t) {
      HX_RETURN_IF_ERROR(RunOnStage(opened, tasks[t],
                                    {.shard = flags.shard,
                                     .journal = journal ? &*journal : nullptr,
                                     .stage = manifest.stage,
                                     .identity = identity},
                                    result.tasks[t], progress));
      HX_RETURN_IF_ERROR(files.Say(
          StageLine(result.tasks[t], result.tasks[t].stages.size() - 1)));
    }
  }
  for (const TaskResult& task : result.tasks)
    HX_RETURN_IF_ERROR(files.Say(FootLine(task, result.shard)));
  return OkStatus();
}

}  // namespace hexllm::cli

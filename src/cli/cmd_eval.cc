#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/quote.h"
#include "cli/command.h"
#include "cli/eval_compare.h"
#include "cli/eval_flags.h"
#include "cli/eval_outputs.h"
#include "cli/eval_stages.h"
#include "cli/eval_tasks.h"
#include "cli/ids_argument.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "compile/artifact_parts.h"
#include "eval/merge.h"
#include "eval/report_text.h"
#include "eval/result_json.h"
#include "eval/task.h"

namespace hexllm::cli {
namespace {

// `eval merge`.
struct MergeFlags {
  std::vector<std::string> parts;
  EvalOutputs outputs;
};

Error Usage(std::string message) {
  return Error{ErrorCode::kUsage, std::move(message)};
}

// kUsage for flags of quantization that no stage would use.
Status CheckQuantFlags(const EvalFlags& flags) {
  const bool only_float =
      flags.stages.empty()
          ? flags.quant.recipe.empty()
          : std::ranges::all_of(flags.stages, [](const std::string& stage) {
              return stage == "fp";
            });
  const bool calibrates =
      IsGiven(flags.quant.calibration) || !flags.quant.calib_tokens.empty();
  const std::pair<bool, const char*> given[] = {
      {calibrates, "--calib-*"},
      {!flags.quant.recipe.empty(), "--recipe"},
      {flags.target.soc_is_named, "--soc"}};
  for (const auto& [is_given, flag] : given) {
    if (!only_float || !is_given) continue;
    return Usage(fmt::format(
        "{}: expected with a stage that is quantized, found fp alone", flag));
  }
  return OkStatus();
}

// kUsage for the QNN libraries where no stage runs on the HTP.
Status CheckQnnLibDirOf(const EvalFlags& flags) {
  if (flags.engine.qnn_lib_dir.empty() ||
      std::ranges::count(flags.stages, "device") > 0) {
    return OkStatus();
  }
  if (!IsArtifact(flags.model)) return CheckQnnLibDir(flags.engine, "cpu");
  HX_ASSIGN_OR_RETURN(const auto artifact,
                      artifact::Artifact::Open(flags.model));
  return CheckQnnLibDir(flags.engine, BackendOf(*artifact));
}

// kUsage for --data-dir when nothing reads a file in it.
Status CheckDataDir(const EvalFlags& flags) {
  const bool used =
      !flags.quant.calibration.tasks.empty() ||
      std::ranges::any_of(flags.tasks, [&](const std::string& task) {
        return TaskPath(task, flags.data_dir) != task;
      });
  if (used || flags.data_dir.empty()) return OkStatus();
  return Usage(fmt::format(
      "--data-dir: expected with --calib-tasks or a task of {}, found neither",
      fmt::join(BuiltinTasks(), ", ")));
}

Status CheckFlags(const EvalFlags& flags) {
  if (flags.model.empty())
    return Usage("eval: expected MODEL|FILE.hxl, found none");
  if (flags.tasks.empty() && !flags.sqnr && !flags.bisect)
    return Usage("eval: expected --tasks, --sqnr or --bisect, found none");
  HX_RETURN_IF_ERROR(CheckTasks(flags));
  HX_RETURN_IF_ERROR(CheckComparisons(flags));
  for (size_t i = 0; i < flags.stages.size(); ++i) {
    HX_RETURN_IF_ERROR(CheckStage(flags.stages[i]));
    if (std::count(flags.stages.begin(), flags.stages.end(), flags.stages[i]) >
        1) {
      return Usage(
          fmt::format("--stages: expected each stage once, found {} "
                      "again",
                      flags.stages[i]));
    }
  }
  HX_RETURN_IF_ERROR(CheckQuantFlags(flags));
  if (flags.sharded && flags.tasks.empty())
    return Usage("--shard: expected with --tasks, found alone");
  if (flags.sharded && flags.outputs.json.empty()) {
    return Usage(
        "--shard: expected --json, the part that `hexllm eval merge` "
        "reads, found none");
  }
  if (flags.sharded && (flags.sqnr || flags.bisect)) {
    return Usage(
        "--sqnr, --bisect: expected without --shard, which shares out the "
        "items of tasks alone");
  }
  if (flags.log_samples && flags.outputs.json.empty())
    return Usage("--log-samples: expected with --json, found alone");
  HX_RETURN_IF_ERROR(CheckSelfTestFlag(flags.model, flags.no_self_test));
  HX_RETURN_IF_ERROR(CheckDataDir(flags));
  return CheckQnnLibDirOf(flags);
}

// kUsage when a report is to go where the journal lies.
Status CheckResumeDiffers(const EvalFlags& flags) {
  if (flags.resume.empty()) return OkStatus();
  const std::pair<const std::string&, const char*> outputs[] = {
      {flags.outputs.json, "--json"},
      {flags.outputs.csv, "--csv"},
      {flags.outputs.report, "--report"}};
  for (const auto& [path, flag] : outputs)
    HX_RETURN_IF_ERROR(CheckOutputsDiffer(flags.resume, path, flag));
  return OkStatus();
}

Status Eval(const EvalFlags& flags) {
  HX_RETURN_IF_ERROR(CheckFlags(flags));
  const bool compares = flags.sqnr || flags.bisect;
  if (!compares) {  // else fp is looked at too
    HX_RETURN_IF_ERROR(
        CheckCheckpointNeeded(flags.model, flags.checkpoint, flags.stages));
  }
  std::vector<std::string> inputs = FilesOf(flags.quant, flags.source);
  inputs.push_back(flags.checkpoint);
  inputs.push_back(flags.resume);
  inputs.push_back(IdsFile(flags.ids));
  for (const std::string& task : flags.tasks)
    inputs.push_back(TaskPath(task, flags.data_dir));
  HX_RETURN_IF_ERROR(CheckOutput(flags.resume, flags.model, {}));
  HX_RETURN_IF_ERROR(CheckResumeDiffers(flags));
  HX_ASSIGN_OR_RETURN(EvalFiles files,
                      EvalFiles::Open(flags.outputs, flags.model, inputs));
  for (const std::string& stage : flags.stages) {
    HX_RETURN_IF_ERROR(CheckStageOpens({flags.model, flags.checkpoint, {}},
                                       stage, flags.engine));
  }
  StderrProgress progress(flags.quiet ? StderrProgress::Verbosity::kQuiet
                                      : StderrProgress::Verbosity::kNormal);
  EvalResult result{.producer = ProducerName(),
                    .model = {},
                    .mode = flags.mode,
                    .shard = flags.shard};
  std::optional<PromptPlan> prompt;
  if (compares) {
    HX_ASSIGN_OR_RETURN(prompt, PlanPrompt(flags, progress));
  }
  HX_RETURN_IF_ERROR(CheckLaterStages(flags));
  if (!flags.tasks.empty())
    HX_RETURN_IF_ERROR(RunTasks(flags, files, result, progress));
  if (prompt)
    HX_RETURN_IF_ERROR(RunComparisons(flags, *prompt, files, result, progress));
  progress.Finish();
  const bool with_items = flags.log_samples || flags.sharded;
  return files.Write(result, with_items ? WithItems::kYes : WithItems::kNo);
}

// kUsage for what stands before `merge`: flags of an evaluation.
Status RefuseEvalFlags(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    return Usage(
        fmt::format("eval merge: expected the parts, -o, --csv and --report "
                    "alone, found {}",
                    option->get_name()));
  }
  return OkStatus();
}

Status Merge(const MergeFlags& flags) {
  HX_ASSIGN_OR_RETURN(EvalFiles files,
                      EvalFiles::Open(flags.outputs, "", flags.parts));
  std::vector<ShardPart> parts;
  for (const std::string& path : flags.parts) {
    HX_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
    auto part = ResultFromJson(json);
    if (!part.ok()) return std::move(part).error().With(path);
    parts.push_back({path, std::move(part).value()});
  }
  HX_ASSIGN_OR_RETURN(const EvalResult merged, MergeShards(std::move(parts)));
  HX_RETURN_IF_ERROR(files.Write(merged, WithItems::kNo));
  for (const TaskResult& task : merged.tasks) {
    for (size_t stage = 0; stage < task.stages.size(); ++stage)
      HX_RETURN_IF_ERROR(Print(StageLine(task, stage)));
    HX_RETURN_IF_ERROR(Print(FootLine(task, merged.shard)));
  }
  return OkStatus();
}

void AddReportFlags(CLI::App& app, EvalOutputs& outputs) {
  app.add_option("--csv", outputs.csv, "Write the figures here, a row each")
      ->type_name("FILE");
  app.add_option("--report", outputs.report,
                 "Write a page with tables and plots here: one HTML file")
      ->type_name("FILE");
}

void AddMerge(CLI::App& app, MergeFlags& flags) {
  app.add_option("parts", flags.parts,
                 "What --json of each --shard wrote, in any order")
      ->required()
      ->type_name("PARTS");
  app.add_option("-o,--output", flags.outputs.json,
                 "Write the result of all of them here, as --json would")
      ->required()
      ->type_name("FILE");
  AddReportFlags(app, flags.outputs);
}

void AddTaskFlags(CLI::App& app, EvalFlags& flags) {
  app.add_option("--tasks", flags.tasks,
                 "What to measure: wikitext = perplexity of WikiText-2's "
                 "documents as lm-evaluation-harness has it, wikitext-fixed = "
                 "of its whole text in windows, hellaswag, or a file of JSON "
                 "lines (docs/evaluation.md)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("TASK|FILE.jsonl,...");
  app.add_option("--data-dir", flags.data_dir,
                 "The folder that holds wikitext-2/test.txt and "
                 "hellaswag/validation-2000.jsonl")
      ->type_name("DIR");
  app.add_option("--window", flags.window,
                 "Most tokens that are run together, from an empty context; "
                 "default: 512, or the context where that is shorter")
      ->check(WholeNumber(2, UINT32_MAX))
      ->type_name("N");
  app.add_option("--stride", flags.stride,
                 "wikitext-fixed: tokens from one window's start to the next; "
                 "default: the window")
      ->check(WholeNumber(1, UINT32_MAX))
      ->type_name("N");
  app.add_option("--limit", flags.limit,
                 "Documents, questions or windows of each task; default: all")
      ->check(WholeNumber(0, UINT64_MAX))
      ->type_name("N");
  app.add_option("--num-fewshot", flags.num_fewshot,
                 "Other questions with their answers before each question")
      ->check(WholeNumber(0, 1000))
      ->type_name("N");
}

void AddCompareFlags(CLI::App& app, EvalFlags& flags) {
  app.add_flag("--sqnr", flags.sqnr,
               "Logits of each stage against fp's on a prompt: SQNR, KL "
               "divergence, flips of the likeliest token, SQNR of each layer");
  app.add_flag("--bisect", flags.bisect,
               "Name the first value at which qdq leaves fp, or device qdq");
  app.add_option("--tolerance", flags.tolerance_db,
                 "--bisect: the least SQNR in dB that is no departure")
      ->check(CLI::Range(-200.0, 200.0))
      ->type_name("DB");
  app.add_option("-p,--prompt", flags.prompt,
                 "--sqnr, --bisect: the text; default: a built-in one")
      ->type_name("TEXT");
  app.add_option("--tokens", flags.ids,
                 "--sqnr, --bisect: token ids in place of a text")
      ->type_name("IDS");
}

void AddRunFlags(CLI::App& app, EvalFlags& flags) {
  app.add_option("--stages", flags.stages,
                 "Which numbers: fp = the float graph, qdq = the quantized one "
                 "on the CPU, device = the HTP's, on its x86 simulator; "
                 "default: fp, or what the recipe or artifact is")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("fp,qdq,device");
  app.add_option(
         "--mode", flags.mode,
         "Which graphs run: kv = one token a step, hybrid = blocks of "
         "the prefill graph, lookahead = blocks of the lookahead graph; "
         "default: the artifact's largest but for the last")
      ->check(CLI::IsMember({"kv", "hybrid", "lookahead"}))
      ->type_name("kv|hybrid|lookahead");
  app.add_option("--model", flags.checkpoint,
                 "The checkpoint of an artifact, for its stages fp and qdq")
      ->type_name("MODEL");
  app.add_option("--shard", "Only the items of part i of n, for `eval merge`")
      ->check(CLI::Validator(
          [&flags](const std::string& text) {
            const auto shard = ParseShard(text);
            if (!shard) {
              return fmt::format("expected i/n with 1 <= i <= n, found {}",
                                 Quoted(text));
            }
            flags.sharded = true;
            flags.shard = *shard;
            return std::string();
          },
          ""))
      ->type_name("i/n");
  app.add_option("--resume", flags.resume,
                 "Keep what is done in this file, and go on from it")
      ->type_name("FILE");
  app.add_option("--json", flags.outputs.json, "Write the result here")
      ->type_name("FILE");
  app.add_flag("--log-samples", flags.log_samples,
               "--json with the scores of each item");
  AddReportFlags(app, flags.outputs);
  app.add_flag("--no-self-test", flags.no_self_test,
               "Do not check the golden logits of a certified artifact first");
  app.add_flag("-q,--quiet", flags.quiet, "No progress");
}

}  // namespace

Body AddEval(CLI::App& app) {
  auto flags = std::make_shared<EvalFlags>();
  auto merge = std::make_shared<MergeFlags>();
  app.add_option("model", flags->model,
                 "An artifact, or a model as for compile")
      ->type_name("MODEL|FILE.hxl");
  AddTaskFlags(app, *flags);
  AddCompareFlags(app, *flags);
  AddRunFlags(app, *flags);
  for (const char* name :
       {"--stride", "--limit", "--num-fewshot", "--resume", "--log-samples"})
    app.get_option(name)->needs(app.get_option("--tasks"));
  app.get_option("--tolerance")->needs(app.get_option("--bisect"));
  AddSourceFlags(app, flags->source);
  AddRecipeFlags(app, flags->quant);
  AddSocFlag(app, flags->target);
  AddEngineFlags(app, flags->engine);
  CLI::App* const merge_app =
      app.add_subcommand("merge", "Put the parts of a sharded run together");
  AddMerge(*merge_app, *merge);
  return [flags, merge, merge_app, &app]() -> Status {
    if (merge_app->parsed()) {
      HX_RETURN_IF_ERROR(RefuseEvalFlags(app));
      return Merge(*merge);
    }
    HX_RETURN_IF_ERROR(RefuseModelFlags(app, flags->model, "--window"));
    return Eval(*flags);
  };
}

}  // namespace hexllm::cli

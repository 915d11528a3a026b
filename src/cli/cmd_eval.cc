#include <fmt/format.h>

#include <algorithm>

#include "base/mapped_file.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "cli/stage_argument.h"
#include "eval/perplexity.h"
#include "runtime/artifact_text.h"
#include "text/tokenizer.h"

namespace hexllm::cli {
namespace {

struct Flags {
  std::string model;
  std::string checkpoint;
  std::string tasks;
  std::vector<std::string> stages;
  std::string data_dir;
  uint32_t window = 512;
  std::optional<uint32_t> stride;
  std::optional<uint64_t> limit;
  std::string json;
  models::SourceOptions source;
  TargetOptions target;
  QuantFlags quant;
  BackendOptions engine;
  bool quiet = false;
};

Status CheckFlags(const Flags& flags) {
  if (flags.tasks != "wikitext") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("--tasks: expected wikitext, the only task of "
                             "this version, found '{}'",
                             flags.tasks)};
  }
  for (const std::string& stage : flags.stages)
    HX_RETURN_IF_ERROR(CheckStage(stage));
  const bool only_float =
      !flags.stages.empty() &&
      std::all_of(flags.stages.begin(), flags.stages.end(),
                  [](const std::string& stage) { return stage == "fp"; });
  if (only_float && !flags.quant.recipe.empty()) {
    return Error{ErrorCode::kUsage,
                 "--recipe: expected with a stage that has one, found --stages "
                 "fp alone"};
  }
  return OkStatus();
}

Result<std::vector<int32_t>> TokensOfTask(const Flags& flags,
                                          const artifact::Artifact& artifact) {
  HX_ASSIGN_OR_RETURN(const Tokenizer tokenizer, TokenizerOf(artifact));
  HX_ASSIGN_OR_RETURN(const MappedFile file,
                      MappedFile::Open(WikitextPath(flags.data_dir)));
  return tokenizer.Encode(AsText(file.bytes()), AddSpecial::kNo);
}

// One row of the result.
struct StageResult {
  std::string stage;
  std::string recipe;
  uint64_t weight_bytes = 0;
  Perplexity perplexity;
};

// "wikitext qdq (16a8w, 134.7 MB): perplexity 25.7012 +- 0.43 (+0.23% of fp)".
std::string ResultLine(const StageResult& result, const StageResult& first) {
  const Perplexity& p = result.perplexity;
  std::string line = fmt::format(
      "wikitext {} ({}, weights {:.1f} MB): perplexity {:.4f} +- {:.4f}",
      result.stage, result.recipe,
      static_cast<double>(result.weight_bytes) / 1e6, p.perplexity,
      p.perplexity * p.standard_error);
  if (&result != &first) {
    line += fmt::format(" ({:+.2f}% of {})",
                        (p.perplexity / first.perplexity.perplexity - 1) * 100,
                        first.stage);
  }
  return line + "\n";
}

std::string FootLine(const Flags& flags, const Perplexity& p) {
  return fmt::format(
      "per token: {} counted, {} windows of {}, stride {}, no BOS\n",
      p.counted_tokens, p.windows, flags.window,
      flags.stride.value_or(flags.window));
}

Json ResultJson(const Flags& flags, const std::vector<StageResult>& results) {
  Json stages = Json::array();
  for (const StageResult& result : results) {
    const Perplexity& p = result.perplexity;
    stages.push_back({{"stage", result.stage},
                      {"recipe", result.recipe},
                      {"weight_bytes", result.weight_bytes},
                      {"perplexity", p.perplexity},
                      {"mean_nll", p.mean_nll},
                      {"standard_error", p.standard_error}});
  }
  const Perplexity& first = results.front().perplexity;
  return {{"task", "wikitext"},
          {"unit", "token"},
          {"bos", false},
          {"window", flags.window},
          {"stride", flags.stride.value_or(flags.window)},
          {"windows", first.windows},
          {"counted_tokens", first.counted_tokens},
          {"stages", std::move(stages)}};
}

Result<CompileOptions> CompileOptionsFor(const Flags& flags) {
  CompileOptions compile;
  compile.source = flags.source;
  compile.max_context_len = flags.window;
  compile.prefill_logits = LogitsRows::kAll;
  compile.target = flags.target;
  SetEngine(flags.engine, compile);
  HX_RETURN_IF_ERROR(ApplyQuantFlags(flags.quant, compile));
  compile.calibration.data_dir = flags.data_dir;
  return compile;
}

Result<StageResult> MeasureStage(const Flags& flags, const std::string& stage,
                                 StderrProgress& progress) {
  HX_ASSIGN_OR_RETURN(CompileOptions compile, CompileOptionsFor(flags));
  if (stage == "fp") {
    compile.recipe.clear();
    compile.calibration = {};
  }
  HX_ASSIGN_OR_RETURN(auto artifact, OpenStage({flags.model, flags.checkpoint,
                                                std::move(compile)},
                                               stage, progress));
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                      TokensOfTask(flags, *artifact));
  HX_ASSIGN_OR_RETURN(const auto engine,
                      CreateEngineFor(*artifact, flags.engine));
  HX_ASSIGN_OR_RETURN(const auto session,
                      Session::Create({artifact, engine.get(), {}}));
  PerplexityOptions options;
  options.window = flags.window;
  options.stride = flags.stride.value_or(flags.window);
  options.limit = flags.limit;
  HX_ASSIGN_OR_RETURN(const Perplexity measured,
                      MeasurePerplexity(*session, ids, options, progress));
  progress.Finish();
  const artifact::Manifest& manifest = artifact->manifest();
  return StageResult{.stage = manifest.stage,
                     .recipe = manifest.recipe,
                     .weight_bytes = manifest.weight_bytes,
                     .perplexity = measured};
}

Status Eval(const Flags& flags) {
  HX_RETURN_IF_ERROR(CheckFlags(flags));
  std::vector<std::string> inputs = FilesOf(flags.quant, flags.source);
  inputs.push_back(flags.checkpoint);
  inputs.push_back(WikitextPath(flags.data_dir));
  HX_ASSIGN_OR_RETURN(auto json_file,
                      OptionalOutput(flags.json, flags.model, inputs));
  StderrProgress progress(flags.quiet ? StderrProgress::Verbosity::kQuiet
                                      : StderrProgress::Verbosity::kNormal);
  // Without --stages: the one that model, artifact and recipe mean.
  const std::vector<std::string> stages =
      flags.stages.empty() ? std::vector<std::string>{""} : flags.stages;
  std::vector<StageResult> results;
  for (const std::string& stage : stages) {
    HX_ASSIGN_OR_RETURN(StageResult result,
                        MeasureStage(flags, stage, progress));
    results.push_back(std::move(result));
    HX_RETURN_IF_ERROR(PrintNow(ResultLine(results.back(), results.front())));
  }
  HX_RETURN_IF_ERROR(Print(FootLine(flags, results.front().perplexity)));
  if (!json_file) return OkStatus();
  HX_RETURN_IF_ERROR(
      json_file->Write(AsBytes(DumpJson(ResultJson(flags, results)) + "\n")));
  return json_file->Commit();
}

}  // namespace

Body AddEval(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model,
                 "An artifact, or a model as for compile")
      ->required()
      ->type_name("MODEL|FILE.hxl");
  app.add_option("--tasks", flags->tasks,
                 "What to measure: wikitext = token-level perplexity of "
                 "WikiText-2's test text")
      ->required()
      ->type_name("wikitext");
  app.add_option("--data-dir", flags->data_dir,
                 "The folder that holds wikitext-2/test.txt")
      ->required()
      ->type_name("DIR");
  app.add_option("--stages", flags->stages,
                 "Which numbers: fp = the float graph, qdq = the quantized one "
                 "on the CPU, device = the HTP's, on its x86 simulator; "
                 "default: fp, or what the recipe or artifact is")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("fp,qdq,device");
  app.add_option("--model", flags->checkpoint,
                 "The checkpoint of an artifact, for its float graph")
      ->type_name("MODEL");
  app.add_option("--window", flags->window,
                 "Tokens of a window, each run from an empty context")
      ->check(WholeNumber(2, UINT32_MAX))
      ->type_name("N");
  app.add_option(
         "--stride", flags->stride,
         "Tokens from one window's start to the next; default: the window")
      ->type_name("N");
  app.add_option("--limit", flags->limit, "Windows; default: all")
      ->check(WholeNumber(0, UINT64_MAX))
      ->type_name("N");
  app.add_option("--json", flags->json, "Write the result here")
      ->type_name("FILE");
  app.add_flag("-q,--quiet", flags->quiet, "No progress");
  AddSourceFlags(app, flags->source);
  AddRecipeFlags(app, flags->quant);
  AddSocFlag(app, flags->target);
  AddEngineFlags(app, flags->engine);
  return [flags, &app]() -> Status {
    HX_RETURN_IF_ERROR(RefuseModelFlags(app, flags->model));
    return Eval(*flags);
  };
}

}  // namespace hexllm::cli

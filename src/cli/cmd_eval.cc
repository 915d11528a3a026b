#include <fmt/format.h>

#include "base/mapped_file.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "eval/perplexity.h"
#include "runtime/artifact_text.h"
#include "text/tokenizer.h"

namespace hexllm::cli {
namespace {

struct Flags {
  std::string model;
  std::string tasks;
  std::string stages = "fp";
  std::string data_dir;
  uint32_t window = 512;
  std::optional<uint32_t> stride;
  std::optional<uint64_t> limit;
  std::string json;
  models::SourceOptions source;
  int threads = 0;
  bool quiet = false;
};

constexpr std::string_view kWikitextFile = "wikitext-2/test.txt";

Status CheckFlags(const Flags& flags) {
  if (flags.tasks != "wikitext")
    return Error{ErrorCode::kUnsupported,
                 fmt::format("--tasks: expected wikitext, the only task of "
                             "this version, found '{}'",
                             flags.tasks)};
  if (flags.stages != "fp")
    return Error{
        ErrorCode::kUnsupported,
        fmt::format(
            "--stages: expected fp, the only stage of this version, found '{}'",
            flags.stages)};
  return OkStatus();
}

Result<std::vector<int32_t>> TokensOfTask(const Flags& flags,
                                          const artifact::Artifact& artifact) {
  HX_ASSIGN_OR_RETURN(const Tokenizer tokenizer, TokenizerOf(artifact));
  HX_ASSIGN_OR_RETURN(
      const MappedFile file,
      MappedFile::Open(fmt::format("{}/{}", flags.data_dir, kWikitextFile)));
  return tokenizer.Encode(AsText(file.bytes()), AddSpecial::kNo);
}

std::string ResultLine(const Flags& flags, const Perplexity& result) {
  return fmt::format(
      "wikitext fp: perplexity {:.4f} +- {:.4f} per token ({} tokens counted, "
      "{} windows of {}, stride {}, no BOS)\n",
      result.perplexity, result.perplexity * result.standard_error,
      result.counted_tokens, result.windows, flags.window,
      flags.stride.value_or(flags.window));
}

Json ResultJson(const Flags& flags, const Perplexity& result) {
  return {{"task", "wikitext"},
          {"stage", "fp"},
          {"unit", "token"},
          {"bos", false},
          {"window", flags.window},
          {"stride", flags.stride.value_or(flags.window)},
          {"windows", result.windows},
          {"counted_tokens", result.counted_tokens},
          {"perplexity", result.perplexity},
          {"mean_nll", result.mean_nll},
          {"standard_error", result.standard_error}};
}

Status Eval(const Flags& flags) {
  HX_RETURN_IF_ERROR(CheckFlags(flags));
  HX_ASSIGN_OR_RETURN(auto json_file,
                      OptionalOutput(flags.json, flags.model, ""));
  StderrProgress progress(flags.quiet ? StderrProgress::Verbosity::kQuiet
                                      : StderrProgress::Verbosity::kNormal);
  CompileOptions compile;
  compile.source = flags.source;
  compile.max_context_len = flags.window;
  compile.prefill_logits = LogitsRows::kAll;
  HX_ASSIGN_OR_RETURN(auto artifact,
                      OpenOrCompile(flags.model, compile, progress));
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                      TokensOfTask(flags, *artifact));
  HX_ASSIGN_OR_RETURN(const auto engine,
                      CreateEngineFor(*artifact, flags.threads));
  HX_ASSIGN_OR_RETURN(const auto session,
                      Session::Create({artifact, engine.get(), {}}));
  PerplexityOptions options;
  options.window = flags.window;
  options.stride = flags.stride.value_or(flags.window);
  options.limit = flags.limit;
  HX_ASSIGN_OR_RETURN(const Perplexity result,
                      MeasurePerplexity(*session, ids, options, progress));
  progress.Finish();
  HX_RETURN_IF_ERROR(Print(ResultLine(flags, result)));
  if (!json_file) return OkStatus();
  HX_RETURN_IF_ERROR(
      json_file->Write(AsBytes(DumpJson(ResultJson(flags, result)) + "\n")));
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
                 "Which numbers: fp = the float graph")
      ->type_name("NAME");
  app.add_option("--window", flags->window,
                 "Tokens of a window, each run from an empty context")
      ->type_name("N");
  app.add_option(
         "--stride", flags->stride,
         "Tokens from one window's start to the next; default: the window")
      ->type_name("N");
  app.add_option("--limit", flags->limit, "Windows; default: all")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option("--json", flags->json, "Write the result here")
      ->type_name("FILE");
  app.add_flag("-q,--quiet", flags->quiet, "No progress");
  AddSourceFlags(app, flags->source);
  AddThreadsFlag(app, flags->threads);
  return [flags, &app]() -> Status {
    HX_RETURN_IF_ERROR(RefuseModelFlags(app, flags->model));
    return Eval(*flags);
  };
}

}  // namespace hexllm::cli

#include <fmt/format.h>

#include "backend/htp/soc_table.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "cli/stage_argument.h"
#include "compile/estimate.h"
#include "compile/estimate_report.h"

namespace hexllm::cli {
namespace {

struct Flags {
  std::string model;
  std::string checkpoint;
  bool estimate = false;
  std::vector<std::string> socs;
  size_t top = 10;
  std::string json;
  std::string trace;
  QuantFlags quant;  // --recipe alone: nothing is calibrated
  CompileOptions compile;
  BackendOptions engine;
  bool quiet = false;
};

EstimateOptions OptionsFor(const Flags& flags) {
  CompileOptions compile = flags.compile;
  compile.recipe = flags.quant.recipe;
  SetEngine(flags.engine, compile);
  return {.compile = compile,
          .job = {.socs = flags.socs,
                  .lib_dir = compile.target.qnn_lib_dir,
                  .scratch_parent = TemporaryFolder()},
          .trace_path = flags.trace};
}

// What the artifact knows by itself.
Result<ModelEstimate> FromArtifact(const artifact::Artifact& artifact,
                                   const Flags& flags) {
  HX_ASSIGN_OR_RETURN(ModelEstimate stored, StoredEstimate(artifact));
  const auto usage = [&](std::string_view flag, std::string_view has) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: {} holds {}; for more, name its checkpoint "
                             "with --model",
                             flag, flags.model, has)};
  };
  if (!flags.trace.empty()) return usage("--trace", "figures, no schedules");
  for (const std::string& name : flags.socs) {
    HX_ASSIGN_OR_RETURN(const htp::Soc soc, htp::FindSoc(name));
    const std::string& has = stored.graphs.front().estimate.soc;
    if (soc.name != has) return usage("--soc", "the estimate for " + has);
  }
  return stored;
}

Result<ModelEstimate> Estimate(const Flags& flags, ProgressSink& progress) {
  EstimateOptions options = OptionsFor(flags);
  if (!IsArtifact(flags.model)) {
    if (options.job.socs.empty())
      options.job.socs = {options.compile.target.soc};
    return EstimateModel(flags.model, options, progress);
  }
  HX_ASSIGN_OR_RETURN(const auto artifact,
                      artifact::Artifact::Open(flags.model));
  if (flags.checkpoint.empty()) return FromArtifact(*artifact, flags);
  HX_RETURN_IF_ERROR(MatchArtifact(*artifact, options));
  if (options.job.socs.empty()) {
    HX_ASSIGN_OR_RETURN(std::string soc, SocOf(*artifact, options.job.lib_dir));
    options.job.socs = {std::move(soc)};
  }
  return EstimateModel(flags.checkpoint, options, progress);
}

Status RunEstimate(const Flags& flags) {
  std::vector<std::string> inputs = FilesOf(flags.quant, flags.compile.source);
  inputs.push_back(flags.checkpoint);
  HX_RETURN_IF_ERROR(CheckOutput(flags.trace, flags.model, inputs));
  HX_RETURN_IF_ERROR(CheckOutputsDiffer(flags.json, flags.trace, "--trace"));
  HX_ASSIGN_OR_RETURN(auto json_file,
                      OptionalOutput(flags.json, flags.model, inputs));
  StderrProgress progress(flags.quiet ? StderrProgress::Verbosity::kQuiet
                                      : StderrProgress::Verbosity::kNormal);
  HX_ASSIGN_OR_RETURN(const ModelEstimate estimate, Estimate(flags, progress));
  progress.Finish();
  HX_RETURN_IF_ERROR(PrintNow(DescribeModelEstimate(estimate, flags.top)));
  if (!json_file) return OkStatus();
  HX_RETURN_IF_ERROR(
      json_file->Write(AsBytes(DumpJson(EstimateToJson(estimate)) + "\n")));
  return json_file->Commit();
}

Status CheckFlags(const Flags& flags) {
  if (!flags.estimate) {
    return Error{ErrorCode::kUsage,
                 "bench: expected --estimate, the only benchmark of this "
                 "version"};
  }
  return CheckCheckpointFlag(flags.model, flags.checkpoint);
}

void AddEstimateFlags(CLI::App& app, Flags& flags) {
  app.add_flag("--estimate", flags.estimate,
               "How long the graphs take on a phone in the opinion of the QNN "
               "compiler's cost model; nothing is measured");
  app.add_option("--soc", flags.socs,
                 "The chips to estimate for; default: the artifact's, or " +
                     flags.compile.target.soc)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,...")
      ->default_str("");
  app.add_option("--model", flags.checkpoint,
                 "The checkpoint of an artifact: estimates its graphs anew, "
                 "for any chip")
      ->type_name("MODEL");
  app.add_option("--top", flags.top, "Ops to list for each graph")
      ->check(WholeNumber(0, UINT32_MAX))
      ->type_name("N");
  app.add_option("--trace", flags.trace,
                 "Write the schedules here, for ui.perfetto.dev: a process for "
                 "each graph and chip, times in microseconds")
      ->type_name("FILE");
}

void AddModelFlags(CLI::App& app, Flags& flags) {
  app.add_option("--recipe", flags.quant.recipe,
                 "Quantization: a name of `hexllm recipe list`, or a JSON file")
      ->type_name("NAME|FILE");
  AddModelModeFlags(app, flags.compile);
  app.add_option("--prefill-ar-len", flags.compile.prefill_ar_len,
                 "Tokens of a prompt block (hybrid)")
      ->type_name("N");
  app.add_option("--max-context-len", flags.compile.max_context_len,
                 "Longest prompt and answer together")
      ->type_name("N");
  AddPrefillLogitsFlag(app, flags.compile.prefill_logits);
  AddGraphFlags(app, flags.compile);
  AddSourceFlags(app, flags.compile.source);
}

}  // namespace

Body AddBench(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model,
                 "An artifact, or a model as for compile")
      ->required()
      ->type_name("MODEL|FILE.hxl");
  AddEstimateFlags(app, *flags);
  app.add_option("--json", flags->json, "Write the result here")
      ->type_name("FILE");
  AddModelFlags(app, *flags);
  AddEngineFlags(app, flags->engine);
  app.add_flag("-q,--quiet", flags->quiet, "No progress");
  return [flags, &app]() -> Status {
    HX_RETURN_IF_ERROR(CheckFlags(*flags));
    HX_RETURN_IF_ERROR(RefuseModelFlags(app, flags->model, "--soc"));
    return RunEstimate(*flags);
  };
}

}  // namespace hexllm::cli

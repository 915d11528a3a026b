#include <fmt/format.h>

#include "cli/certify.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "cli/stage_argument.h"

namespace hexllm::cli {
namespace {

struct Flags {
  std::string model;
  std::string out;
  CompileOptions options;
  QuantFlags quant;
  BackendOptions engine;
  bool simulator = false;
  bool estimate = false;
  bool certify = false;
  bool quiet = false;
};

Status Compile(const Flags& flags) {
  StderrProgress progress(flags.quiet ? StderrProgress::Verbosity::kQuiet
                                      : StderrProgress::Verbosity::kNormal);
  const std::vector<std::string> inputs =
      FilesOf(flags.quant, flags.options.source);
  HX_RETURN_IF_ERROR(CheckOutput(flags.out, flags.model, inputs));
  if (IsArtifact(flags.model)) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: expected a checkpoint, found an artifact, "
                             "which is compiled already",
                             flags.model)};
  }
  CompileOptions options = flags.options;
  HX_RETURN_IF_ERROR(ApplyQuantFlags(flags.quant, options));
  SetEngine(flags.engine, options);
  if (flags.simulator && options.target.name != "htp") {
    return Error{
        ErrorCode::kUsage,
        fmt::format("--simulator: expected with --target htp, found {}",
                    options.target.name)};
  }
  if (flags.simulator) options.target.use = htp::ContextUse::kBoth;
  if (flags.estimate) options.estimate_scratch = TemporaryFolder();
  HX_RETURN_IF_ERROR(
      CheckOutput(options.quant_attrs_path, flags.model, inputs));
  HX_RETURN_IF_ERROR(
      CheckOutputsDiffer(flags.out, options.quant_attrs_path, "--quant-attrs"));
  HX_RETURN_IF_ERROR(
      flags.certify ? CompileCertified(flags.model, flags.out, options,
                                       flags.engine, progress)
                    : CompileToFile(flags.model, flags.out, options, progress));
  progress.Finish();
  return OkStatus();
}

// What tells about the artifact, or more than it.
void AddDebugFlags(CLI::App& app, Flags& flags) {
  CompileOptions& options = flags.options;
  app.add_option("--quant-attrs", options.quant_attrs_path,
                 "Write the encodings of all values and weights here, as JSON")
      ->type_name("FILE");
  app.add_flag("--certify", flags.certify,
               "Keep in the artifact its perplexity, its distance to the float "
               "graph, and golden logits that run and eval check");
  app.add_flag("--taps", options.taps,
               "A debug compile: graphs also show their inner values, for eval "
               "--bisect; large and slow");
  app.add_option("--dump-ir", options.dump_ir_dir,
                 "Write the graphs after each pass here, as text")
      ->type_name("DIR");
}

}  // namespace

Body AddCompile(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CompileOptions& options = flags->options;
  app.add_option("model", flags->model,
                 "Hugging Face folder, safetensors or GGUF file")
      ->required()
      ->type_name("MODEL");
  app.add_option("-o,--output", flags->out, "The artifact to write")
      ->required()
      ->type_name("FILE");
  app.add_option("--target", options.target.name, "What to compile for")
      ->type_name("cpu|htp");
  AddSocFlag(app, options.target);
  app.add_flag("--simulator", flags->simulator,
               "htp: besides contexts that x86 can load, where those for the "
               "chip are not");
  app.add_flag(
      "--estimate", flags->estimate,
      "htp: keep in the artifact what `hexllm bench --estimate` shows; "
      "compiles everything twice");
  AddModelModeFlag(app, options.mode);
  app.add_option(
         "--prefill-ar-len", options.prefill_ar_len,
         "Tokens of a prompt block (hybrid); default: 128, or the context")
      ->type_name("N");
  app.add_option("--max-context-len", options.max_context_len,
                 "Longest prompt and answer together; default: 1024, or what "
                 "the model has")
      ->type_name("N");
  AddPrefillLogitsFlag(app, options.prefill_logits);
  AddGraphFlags(app, options);
  AddRecipeFlags(app, flags->quant);
  AddDataDirFlag(app, flags->quant.calibration.data_dir);
  AddDebugFlags(app, *flags);
  AddSourceFlags(app, options.source);
  AddEngineFlags(app, flags->engine);
  app.add_flag("-q,--quiet", flags->quiet, "No progress");
  return [flags, &app]() -> Status {
    if (flags->options.mode == ModelMode::kKv &&
        app.count("--prefill-logits") > 0) {
      return Error{ErrorCode::kUsage,
                   "--prefill-logits: expected with --model-mode hybrid only, "
                   "found kv"};
    }
    return Compile(*flags);
  };
}

}  // namespace hexllm::cli

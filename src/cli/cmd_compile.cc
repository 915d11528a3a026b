#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/machine_memory.h"
#include "base/quote.h"
#include "cli/certify.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "cli/stage_argument.h"
#include "cli/suggest.h"
#include "compile/evictor.h"

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
  bool suggest = false;
  std::string max_memory;
  std::string sink;
  bool quiet = false;
};

// "S,B".
Result<artifact::SinkSettings> ParseSink(const std::string& text) {
  artifact::SinkSettings settings;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, settings.sink_tokens);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == ',') {
    const auto second =
        std::from_chars(first.ptr + 1, end, settings.evict_tokens);
    if (second.ec == std::errc() && second.ptr == end) return settings;
  }
  return Error{ErrorCode::kUsage,
               fmt::format("--use-attention-sink: expected two numbers as in "
                           "4,32, found {}",
                           Quoted(text))};
}

// kUsage for the flags that say how a checkpoint is compiled, and for those of
// the HTP when the artifact's graphs are for another backend.
Status CheckSinkFlags(const CLI::App& app, const Flags& flags) {
  HX_ASSIGN_OR_RETURN(const auto artifact,
                      artifact::Artifact::Open(flags.model));
  const std::string& backend = BackendOf(*artifact);
  for (const char* name : {"--soc", "--simulator", "--qnn-lib-dir"}) {
    if (backend == "htp" || app.count(name) == 0) continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: for graphs of the HTP only, those of {} are "
                             "for {}; leave it out",
                             name, flags.model, backend)};
  }
  constexpr std::string_view kAllowed[] = {
      "model",  "--output",    "--use-attention-sink",
      "--soc",  "--simulator", "--qnn-lib-dir",
      "--quiet"};
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::ranges::count(kAllowed, name) > 0)
      continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: expected with a checkpoint only; of {}, an "
                             "artifact, --use-attention-sink alone can be "
                             "changed",
                             name, flags.model)};
  }
  return OkStatus();
}

// Changes the attention sink of an artifact.
Status CompileSink(const Flags& flags) {
  if (flags.sink.empty()) return RefuseArtifact(flags.model);
  HX_ASSIGN_OR_RETURN(const auto settings, ParseSink(flags.sink));
  TargetOptions target = flags.options.target;
  target.qnn_lib_dir = QnnLibDir(flags.engine.qnn_lib_dir);
  if (flags.simulator) target.use = htp::ContextUse::kBoth;
  return ReplaceEvictor(flags.model, flags.out, target, settings);
}

Status Compile(const Flags& flags) {
  StderrProgress progress(flags.quiet ? StderrProgress::Verbosity::kQuiet
                                      : StderrProgress::Verbosity::kNormal);
  const std::vector<std::string> inputs =
      FilesOf(flags.quant, flags.options.source);
  HX_RETURN_IF_ERROR(CheckOutput(flags.out, flags.model, inputs));
  if (IsArtifact(flags.model)) return CompileSink(flags);
  CompileOptions options = flags.options;
  if (!flags.sink.empty()) {
    HX_ASSIGN_OR_RETURN(options.attention_sink, ParseSink(flags.sink));
  }
  HX_RETURN_IF_ERROR(ApplyQuantFlags(flags.quant, options));
  SetEngine(flags.engine, options);
  HX_RETURN_IF_ERROR(CheckQnnLibDir(flags.engine, options.target.name));
  if (flags.simulator && options.target.name != "htp") {
    return Error{
        ErrorCode::kUsage,
        fmt::format("--simulator: expected with --target htp, found {}",
                    options.target.name)};
  }
  if (flags.simulator) options.target.use = htp::ContextUse::kBoth;
  if (flags.estimate) options.estimate_scratch = TemporaryFolder();
  if (!flags.max_memory.empty()) {
    auto bytes = ParseMemorySize(flags.max_memory);
    if (!bytes.ok()) return std::move(bytes).error().With("--max-memory");
    options.target.max_memory = *bytes;
  }
  HX_RETURN_IF_ERROR(
      CheckOutput(options.quant_attrs_path, flags.model, inputs));
  HX_RETURN_IF_ERROR(
      CheckOutputsDiffer(flags.out, options.quant_attrs_path, "--quant-attrs"));
  std::optional<Suggestions> suggestions;
  if (flags.suggest) {
    HX_ASSIGN_OR_RETURN(
        suggestions,
        Suggestions::Make(flags.model, flags.out, options, inputs, progress));
  }
  HX_RETURN_IF_ERROR(
      flags.certify ? CompileCertified(flags.model, flags.out, options,
                                       flags.engine, progress)
                    : CompileToFile(flags.model, flags.out, options, progress));
  if (suggestions) HX_RETURN_IF_ERROR(suggestions->Commit(progress));
  progress.Finish();
  return OkStatus();
}

// --cache-dir, --max-memory.
void AddEffortFlags(CLI::App& app, Flags& flags) {
  app.add_option(
         "--cache-dir", flags.options.cache_dir,
         "Keep calibrations and contexts of the HTP in this folder, and "
         "take from it what is the same as before: after a change, or "
         "an interruption")
      ->type_name("DIR");
  app.add_option("--max-memory", flags.max_memory,
                 "htp: what compiling contexts may take, several at once or "
                 "one (8G, 500M); default: three quarters of what is free")
      ->type_name("SIZE");
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
  app.add_flag("--quant-recipe-suggestion", flags.suggest,
               "Measure how much each layer's rounding hurts, into "
               "<model>_quantization_error.csv beside FILE, and suggest "
               "recipes, <model>_suggested_*.json");
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
  AddEffortFlags(app, *flags);
  AddModelModeFlags(app, options);
  app.add_option("--prefill-ar-len", options.prefill_ar_len,
                 "Tokens of a prompt block (hybrid, lookahead); default: 128, "
                 "or the context")
      ->type_name("N");
  app.add_option("--max-context-len", options.max_context_len,
                 "Longest prompt and answer together; default: 1024, or what "
                 "the model has")
      ->type_name("N");
  app.add_option("--use-attention-sink", flags->sink,
                 "A full context keeps its first S tokens and drops the B "
                 "after them, again and again. MODEL may then be an artifact: "
                 "FILE is the same one with this sink")
      ->type_name("S,B");
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
                   "--prefill-logits: expected with --model-mode hybrid or "
                   "lookahead, found kv"};
    }
    if (IsArtifact(flags->model) && !flags->sink.empty())
      HX_RETURN_IF_ERROR(CheckSinkFlags(app, *flags));
    return Compile(*flags);
  };
}

}  // namespace hexllm::cli

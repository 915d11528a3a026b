#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/output_file.h"
#include "cli/command.h"
#include "cli/ids_argument.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "cli/stage_argument.h"
#include "eval/score.h"
#include "runtime/session.h"

namespace hexllm::cli {
namespace {

struct Flags {
  std::string model;
  std::string ids;
  std::string out;
  std::string stage;
  std::string checkpoint;
  QuantFlags quant;
  std::optional<int64_t> ar_len;
  bool lookahead = false;
  models::SourceOptions source;
  TargetOptions target;
  BackendOptions engine;
};

// A safetensors file of one f32 tensor "logits" [T,V], written row by row.
class LogitsFile {
 public:
  static Result<LogitsFile> Create(const std::string& path, size_t rows,
                                   size_t vocab) {
    HX_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
    std::string header = fmt::format(
        R"({{"logits":{{"dtype":"F32","shape":[{},{}],"data_offsets":[0,{}]}}}})",
        rows, vocab, rows * vocab * sizeof(float));
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const uint64_t length = header.size();
    HX_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(&length, 1))));
    HX_RETURN_IF_ERROR(file.Write(AsBytes(header)));
    return LogitsFile(std::move(file));
  }
  Status Add(std::span<const float> row) {
    return file_.Write(std::as_bytes(row));
  }
  Status Commit() { return file_.Commit(); }

 private:
  explicit LogitsFile(OutputFile file) : file_(std::move(file)) {}
  OutputFile file_;
};

// Graphs for exactly this run: step size --ar-len (all of the ids when unset),
// logits for every row.
Result<CompileOptions> OptionsFor(const Flags& flags, size_t tokens) {
  const auto count = static_cast<int64_t>(tokens);
  CompileOptions options{.source = flags.source};
  options.prefill_ar_len = flags.ar_len.value_or(count);
  options.max_context_len = std::max(count, *options.prefill_ar_len);
  options.prefill_logits = LogitsRows::kAll;
  options.target = flags.target;
  SetEngine(flags.engine, options);
  HX_RETURN_IF_ERROR(ApplyQuantFlags(flags.quant, options));
  return options;
}

std::vector<std::string> InputsOf(const Flags& flags) {
  std::vector<std::string> inputs = FilesOf(flags.quant, flags.source);
  inputs.push_back(IdsFile(flags.ids));
  inputs.push_back(flags.checkpoint);
  return inputs;
}

Status Logits(const Flags& flags) {
  HX_RETURN_IF_ERROR(CheckOutput(flags.out, flags.model, InputsOf(flags)));
  HX_RETURN_IF_ERROR(
      CheckCheckpointNeeded(flags.model, flags.checkpoint, {&flags.stage, 1}));
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ParseIds(flags.ids));
  if (!IsArtifact(flags.model)) {
    HX_RETURN_IF_ERROR(
        CheckQnnLibDir(flags.engine, flags.stage == "device" ? "htp" : "cpu"));
  }
  StderrProgress progress(StderrProgress::Verbosity::kQuiet);
  HX_ASSIGN_OR_RETURN(CompileOptions compile, OptionsFor(flags, ids.size()));
  HX_ASSIGN_OR_RETURN(auto artifact, OpenStage({flags.model, flags.checkpoint,
                                                std::move(compile)},
                                               flags.stage, progress));
  HX_RETURN_IF_ERROR(CheckQnnLibDir(flags.engine, BackendOf(*artifact)));
  HX_ASSIGN_OR_RETURN(const auto engine,
                      CreateEngineFor(*artifact, flags.engine));
  SessionOptions options;
  if (flags.ar_len)
    options.prompt_step_tokens = static_cast<uint32_t>(*flags.ar_len);
  options.prompt_in_lookahead_graph = flags.lookahead;
  HX_ASSIGN_OR_RETURN(const auto session,
                      Session::Create({artifact, engine.get(), options}));
  HX_ASSIGN_OR_RETURN(LogitsFile file,
                      LogitsFile::Create(flags.out, ids.size(),
                                         artifact->manifest().vocab_size));
  const auto add = [&](uint32_t position,
                       std::span<const float> row) -> Status {
    HX_RETURN_IF_ERROR(CheckFinite(row, position));
    return file.Add(row);
  };
  HX_RETURN_IF_ERROR(session->Logits(ids, add));
  return file.Commit();
}

}  // namespace

Body AddLogits(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model,
                 "An artifact, or a model as for compile")
      ->required()
      ->type_name("MODEL|FILE.hxl");
  app.add_option("--tokens", flags->ids,
                 "Token ids: 1,2,3 or FILE.safetensors:TENSOR")
      ->required()
      ->type_name("IDS");
  app.add_option("-o,--output", flags->out,
                 "The safetensors file to write: tensor logits, f32 [T,V]")
      ->required()
      ->type_name("FILE");
  app.add_option("--stage", flags->stage,
                 "Which numbers: fp = the float graph, qdq = the quantized one "
                 "on the CPU, device = the HTP's, on its x86 simulator; "
                 "default: fp, or what the recipe or artifact is")
      ->type_name("fp|qdq|device");
  app.add_option("--model", flags->checkpoint,
                 "The checkpoint of an artifact, for its stages fp and qdq")
      ->type_name("MODEL");
  auto* ar_len = app.add_option("--ar-len", flags->ar_len,
                                "Tokens a step; default: all (model), the "
                                "largest (artifact)")
                     ->check(CLI::Range(1, 1 << 20))
                     ->type_name("N");
  app.add_flag("--lookahead", flags->lookahead,
               "Run the tokens in the artifact's lookahead graph")
      ->excludes(ar_len);
  AddSourceFlags(app, flags->source);
  AddRecipeFlags(app, flags->quant);
  AddSocFlag(app, flags->target);
  AddDataDirFlag(app, flags->quant.calibration.data_dir);
  AddEngineFlags(app, flags->engine);
  return [flags, &app]() -> Status {
    HX_RETURN_IF_ERROR(RefuseModelFlags(app, flags->model));
    return Logits(*flags);
  };
}

}  // namespace hexllm::cli

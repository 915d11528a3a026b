#include "compile/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "artifact/writer.h"
#include "base/output_file.h"
#include "compile/targets.h"
#include "compile/text_assets.h"
#include "compile/version.h"
#include "ir/text.h"
#include "models/decoder.h"
#include "models/rope_table.h"
#include "passes/pipeline.h"

namespace hexllm {
namespace {

// The lengths of the graphs, with defaults filled in.
struct Lengths {
  int64_t context = 0;  // C
  int64_t prefill = 0;  // T of the prefill graph; 1 = none
};

Result<Lengths> ChooseLengths(const CompileOptions& options,
                              int64_t max_positions) {
  const auto usage = [](std::string message) {
    return Error{ErrorCode::kUsage, std::move(message)};
  };
  Lengths lengths;
  lengths.context = options.max_context_len.value_or(
      std::min(kDefaultContextLen, max_positions));
  if (lengths.context < 1 || lengths.context > max_positions) {
    return usage(fmt::format(
        "--max-context-len: expected 1 to {}, the model's longest, found {}",
        max_positions, lengths.context));
  }
  if (options.mode == ModelMode::kKv && options.prefill_ar_len) {
    return usage(
        "--prefill-ar-len: expected with --model-mode hybrid only, found kv");
  }
  lengths.prefill = options.prefill_ar_len.value_or(
      std::min(kDefaultPrefillArLen, lengths.context));
  if (lengths.prefill < 1 || lengths.prefill > lengths.context) {
    return usage(fmt::format(
        "--prefill-ar-len: expected 1 to {}, the context length, found {}",
        lengths.context, lengths.prefill));
  }
  if (options.mode == ModelMode::kKv) lengths.prefill = 1;
  return lengths;
}

std::vector<models::GraphRequest> GraphRequests(const Lengths& lengths,
                                                LogitsRows prefill_logits) {
  std::vector<models::GraphRequest> requests;
  if (lengths.prefill > 1)
    requests.push_back({GraphKind::kPrefill, lengths.prefill, lengths.context,
                        prefill_logits});
  requests.push_back({GraphKind::kKv, 1, lengths.context, LogitsRows::kAll});
  return requests;
}

// Everything about one compilation that its steps share.
struct Job {
  const CompileOptions& options;
  ProgressSink& progress;
  models::ModelSource source;
  TextAssets text;
  std::string recipe;
  Lengths lengths;
};

// "fp32" is the only recipe of a float graph; quantized ones come with the
// quantizer.
Result<std::string> ChooseRecipe(const CompileOptions& options,
                                 const models::ModelSource& source) {
  const std::string recipe = options.recipe.empty()
                                 ? std::string(source.spec->default_recipe)
                                 : options.recipe;
  if (recipe == "fp32") return recipe;
  return Error{ErrorCode::kUnsupported,
               fmt::format("--recipe: expected fp32, the only recipe of this "
                           "version, found '{}'",
                           recipe)};
}

Result<Job> Prepare(const std::string& model_path,
                    const CompileOptions& options, ProgressSink& progress) {
  progress.Begin("open checkpoint", "", 0);
  HX_RETURN_IF_ERROR(CheckTarget(options.target));
  HX_ASSIGN_OR_RETURN(models::ModelSource source,
                      models::OpenModel(model_path, options.source));
  HX_ASSIGN_OR_RETURN(const Lengths lengths,
                      ChooseLengths(options, source.config.max_positions));
  HX_ASSIGN_OR_RETURN(std::string recipe, ChooseRecipe(options, source));
  progress.Begin("read tokenizer", "", 0);
  HX_ASSIGN_OR_RETURN(TextAssets text, LoadTextAssets(source));
  return Job{options,         progress,          std::move(source),
             std::move(text), std::move(recipe), lengths};
}

// Writes "<dir>/<NN>_<pass>.ir".
Status DumpIr(const std::string& dir, const PassStage& stage,
              const ir::Module& module) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) {
    return Error{ErrorCode::kEnvironment,
                 fmt::format("{}: cannot create: {}", dir, error.message())};
  }
  const auto path = std::filesystem::path(dir) /
                    fmt::format("{:02}_{}.ir", stage.index, stage.pass);
  return WriteFile(path.string(), AsBytes(ir::Print(module)));
}

Result<ir::Module> BuildGraphs(const Job& job) {
  job.progress.Begin("build graphs", "", 0);
  HX_ASSIGN_OR_RETURN(
      ir::Module module,
      models::BuildDecoder(
          job.source, GraphRequests(job.lengths, job.options.prefill_logits)));
  PipelineOptions options;
  const std::string& dir = job.options.dump_ir_dir;
  if (!dir.empty()) {
    options.dump = [&dir](const PassStage& stage, const ir::Module& now) {
      return DumpIr(dir, stage, now);
    };
  }
  HX_RETURN_IF_ERROR(RunPipeline(module, job.options.target, options));
  return module;
}

Status AddRopeTable(const Job& job, artifact::SegmentSink& sink,
                    artifact::Manifest& manifest) {
  const models::RopeConfig& rope = job.source.config.rope;
  const models::RopeTableData table =
      models::MakeRopeTable(rope, job.lengths.context);
  artifact::RopeTable entry{
      .positions = static_cast<uint32_t>(job.lengths.context),
      .half_dim = static_cast<uint32_t>(rope.rotary_dim / 2)};
  HX_ASSIGN_OR_RETURN(
      entry.cos_segment,
      sink.Add({"rope/0/cos", artifact::SegmentKind::kRopeTable},
               std::as_bytes(std::span(table.cos))));
  HX_ASSIGN_OR_RETURN(
      entry.sin_segment,
      sink.Add({"rope/0/sin", artifact::SegmentKind::kRopeTable},
               std::as_bytes(std::span(table.sin))));
  manifest.rope_tables.push_back(entry);
  return OkStatus();
}

Status AddText(const Job& job, artifact::SegmentSink& sink,
               artifact::Manifest& manifest) {
  if (job.text.tokenizer) {
    const std::string blob = SerializeTokenizer(*job.text.tokenizer);
    HX_ASSIGN_OR_RETURN(
        manifest.tokenizer_segment,
        sink.Add({"tokenizer", artifact::SegmentKind::kTokenizer},
                 AsBytes(blob)));
  }
  if (job.text.chat_template) {
    HX_ASSIGN_OR_RETURN(
        manifest.chat_template_segment,
        sink.Add({"chat_template", artifact::SegmentKind::kChatTemplate},
                 AsBytes(*job.text.chat_template)));
  }
  manifest.special_tokens = job.text.special_tokens;
  manifest.generation = job.text.generation;
  return OkStatus();
}

// Fills `sink` and returns the manifest that goes with it.
Result<artifact::Manifest> EmitArtifact(const Job& job,
                                        artifact::SegmentSink& sink) {
  HX_ASSIGN_OR_RETURN(const ir::Module module, BuildGraphs(job));
  artifact::Manifest manifest;
  manifest.producer = ProducerName();
  manifest.model_name = job.source.name;
  manifest.architecture = job.source.config.architecture;
  manifest.stage = "fp";
  manifest.recipe = job.recipe;
  manifest.vocab_size = static_cast<uint32_t>(job.source.config.vocab);
  manifest.layers = static_cast<uint32_t>(job.source.config.layers);
  manifest.context_tokens = static_cast<uint32_t>(job.lengths.context);
  manifest.mask_windows = {0};
  HX_RETURN_IF_ERROR(AddText(job, sink, manifest));
  HX_RETURN_IF_ERROR(AddRopeTable(job, sink, manifest));
  HX_ASSIGN_OR_RETURN(
      manifest.graphs,
      LowerForTarget(job.options.target, module, sink, job.progress));
  return manifest;
}

}  // namespace

std::string ProducerName() { return fmt::format("hexllm {}", kVersion); }

Status CompileToFile(const std::string& model_path, const std::string& out_path,
                     const CompileOptions& options, ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const Job job, Prepare(model_path, options, progress));
  HX_ASSIGN_OR_RETURN(artifact::FileSink sink,
                      artifact::FileSink::Create(out_path));
  HX_ASSIGN_OR_RETURN(artifact::Manifest manifest, EmitArtifact(job, sink));
  progress.Begin("finish file", "", 0);
  return sink.Finish(std::move(manifest));
}

Result<std::shared_ptr<const artifact::Artifact>> CompileToMemory(
    const std::string& model_path, const CompileOptions& options,
    ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const Job job, Prepare(model_path, options, progress));
  artifact::MemorySink sink;
  HX_ASSIGN_OR_RETURN(artifact::Manifest manifest, EmitArtifact(job, sink));
  return sink.Finish(std::move(manifest), job.source.checkpoint);
}

}  // namespace hexllm

#include "compile/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "artifact/writer.h"
#include "base/file_cache.h"
#include "base/output_file.h"
#include "base/quote.h"
#include "compile/artifact_parts.h"
#include "compile/default_recipe.h"
#include "compile/estimate_graphs.h"
#include "compile/estimate_report.h"
#include "compile/evictor.h"
#include "compile/graph_plan.h"
#include "compile/probe_target.h"
#include "compile/quantize.h"
#include "compile/requantize.h"
#include "compile/rotate.h"
#include "compile/size_check.h"
#include "compile/smooth.h"
#include "compile/taps.h"
#include "compile/targets.h"
#include "compile/text_assets.h"
#include "compile/unused_flags.h"
#include "ir/text.h"
#include "ir/weight_size.h"
#include "models/decoder.h"
#include "passes/pipeline.h"
#include "quant/attrs_json.h"
#include "quant/recipe.h"

namespace hexllm {
namespace {

// The recipe of the float graph.
constexpr std::string_view kFloatRecipe = "fp32";

// Everything about one compilation that its steps share.
struct Job {
  const CompileOptions& options;
  ProgressSink& progress;
  models::ModelSource source;
  TextAssets text;
  quant::Recipe recipe;  // of the graphs
  // Of rotations and factors, which those of a float graph may have too.
  quant::Recipe folded;
  CalibrationOptions calibration;   // of the graphs
  TokenSequences smoothed_by = {};  // none where nothing is
  GraphPlan plan;
  std::unique_ptr<const FileCache> cache;  // null = none
  const StandIns* stand_ins = nullptr;     // as QuantizeJob has it
};

// Whether the float graph's values are compared with those of a recipe's
// graphs, which are rotated and smoothed.
bool IsCompared(const CompileOptions& options) {
  return options.stage == Stage::kFloat &&
         (options.taps || !options.recipe_json.empty());
}

std::string DefaultRecipe(const CompileOptions& options,
                          const models::ModelSource& source) {
  const bool is_static =
      IsCompared(options) ||
      (options.stage != Stage::kFloat &&
       (options.stage == Stage::kQdq || NeedsStaticRecipe(options.target)));
  return is_static ? DefaultStaticRecipe(source, options.source)
                   : std::string(kFloatRecipe);
}

// What a stage or target wants of a recipe; empty = the recipe has it.
std::string_view MissingOf(const quant::Recipe& recipe,
                           const CompileOptions& options) {
  const bool is_float = !quant::Quantizes(recipe);
  if (options.stage == Stage::kFloat && !is_float) return kFloatRecipe;
  if (options.stage == Stage::kQdq && is_float) return "a quantized recipe";
  if (NeedsStaticRecipe(options.target) && !IsStatic(recipe))
    return "fp16 or a recipe with static ranges, as the HTP needs";
  return "";
}

// What the user named must fit the model; what is chosen here is made to.
Result<quant::Recipe> FindRecipe(const CompileOptions& options,
                                 const models::ModelSource& source,
                                 ProgressSink& progress) {
  if (!options.recipe_json.empty()) {
    HX_ASSIGN_OR_RETURN(const Json json, ParseJson(options.recipe_json));
    return quant::ParseRecipe(json, "recipe");
  }
  if (!options.recipe.empty()) return quant::FindRecipe(options.recipe);
  HX_ASSIGN_OR_RETURN(const quant::Recipe recipe,
                      quant::FindRecipe(DefaultRecipe(options, source)));
  return FitToModel(recipe, source, progress);
}

// Of graphs whose model is as `folded` makes it.
quant::Recipe GraphRecipe(const quant::Recipe& folded,
                          const CompileOptions& options) {
  return IsCompared(options) ? quant::FloatRecipe(folded) : folded;
}

// kUsage when stage or target and recipe contradict each other.
Result<quant::Recipe> ChooseRecipe(const CompileOptions& options,
                                   const models::ModelSource& source,
                                   ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(quant::Recipe recipe,
                      FindRecipe(options, source, progress));
  const std::string_view missing =
      MissingOf(GraphRecipe(recipe, options), options);
  if (missing.empty()) return recipe;
  return Error{ErrorCode::kUsage, fmt::format("--recipe: expected {}, found {}",
                                              missing, Quoted(recipe.name))};
}

EstimateJob EstimateJobOf(const CompileOptions& options) {
  return {.socs = {options.target.soc},
          .lib_dir = options.target.qnn_lib_dir,
          .scratch_parent = options.estimate_scratch};
}

// What would fail after the work fails before it.
Status CheckWantedEstimate(const CompileOptions& options) {
  if (options.estimate_scratch.empty()) return OkStatus();
  if (NeedsStaticRecipe(options.target))
    return CheckEstimate(EstimateJobOf(options));
  return Error{ErrorCode::kUsage,
               fmt::format("--estimate: expected with --target htp, found {}",
                           options.target.name)};
}

Result<std::unique_ptr<const FileCache>> OpenCache(
    const CompileOptions& options) {
  if (options.cache_dir.empty()) return std::unique_ptr<const FileCache>();
  HX_ASSIGN_OR_RETURN(FileCache cache, FileCache::Open(options.cache_dir));
  return std::make_unique<const FileCache>(std::move(cache));
}

Result<Job> Prepare(const std::string& model_path,
                    const CompileOptions& options, ProgressSink& progress) {
  progress.Begin("open checkpoint", "", 0);
  HX_RETURN_IF_ERROR(CheckTarget(options.target));
  HX_RETURN_IF_ERROR(CheckMaxMemory(options));
  HX_RETURN_IF_ERROR(CheckWantedEstimate(options));
  HX_ASSIGN_OR_RETURN(models::ModelSource source,
                      models::OpenModel(model_path, options.source));
  HX_ASSIGN_OR_RETURN(const GraphPlan plan, PlanGraphs(options, source.config));
  if (options.attention_sink)
    HX_RETURN_IF_ERROR(CheckSink(*options.attention_sink, plan.context));
  HX_ASSIGN_OR_RETURN(quant::Recipe folded,
                      ChooseRecipe(options, source, progress));
  HX_RETURN_IF_ERROR(CheckSoc(options, folded));
  HX_RETURN_IF_ERROR(CheckRotations(source.config, folded.rotations));
  quant::Recipe recipe = GraphRecipe(folded, options);
  HX_RETURN_IF_ERROR(CheckCacheDir(options, recipe));
  HX_ASSIGN_OR_RETURN(auto cache, OpenCache(options));
  progress.Begin("read tokenizer", "", 0);
  HX_ASSIGN_OR_RETURN(TextAssets text, LoadTextAssets(source));
  return Job{.options = options,
             .progress = progress,
             .source = std::move(source),
             .text = std::move(text),
             .recipe = std::move(recipe),
             .folded = std::move(folded),
             .calibration = options.calibration,
             .plan = plan,
             .cache = std::move(cache)};
}

Result<ir::Module> BuildFloat(const Job& job) {
  return models::BuildDecoder(
      job.source, GraphRequests(job.plan, job.options.prefill_logits));
}

QuantizeJob QuantizeJobOf(const Job& job) {
  return {.source = job.source,
          .text = job.text,
          .calibration = job.calibration,
          .threads = job.options.threads,
          .context = job.plan.context,
          .progress = job.progress,
          .stand_ins = job.stand_ins,
          .has_half = HasHalf(job.options.target),
          .cache = job.cache.get()};
}

// What the target would refuse once everything is quantized it refuses here.
Status CheckStatic(const Job& job, const quant::ResolvedRecipe& recipe) {
  if (!IsStatic(job.recipe)) return OkStatus();
  HX_RETURN_IF_ERROR(CheckSizes({.source = job.source,
                                 .recipe = recipe,
                                 .options = job.options,
                                 .plan = job.plan}));
  if (job.stand_ins != nullptr) return OkStatus();
  return ProbeTarget({.recipe = recipe,
                      .options = job.options,
                      .plan = job.plan,
                      .quantize = QuantizeJobOf(job)});
}

// What the recipe says of the model's layers, without its warnings.
Result<quant::ResolvedRecipe> ResolveQuietly(const Job& job) {
  NullProgress quiet;
  HX_ASSIGN_OR_RETURN(const ir::Module module, BuildFloat(job));
  return ResolveFor(module, job.recipe, quiet);
}

// The same before factors are searched; the finished model is checked again,
// since a tied head may get weights of its own.
Status CheckBeforeSmoothing(const Job& job) {
  HX_ASSIGN_OR_RETURN(const quant::ResolvedRecipe recipe, ResolveQuietly(job));
  return CheckStatic(job, recipe);
}

// The channel factors of the recipe, as they are of `rounded`. A calibration of
// the graphs takes the same sequences.
Status Smooth(Job& job, const models::ModelSource& rounded) {
  HX_ASSIGN_OR_RETURN(
      job.smoothed_by,
      MakeCalibrationSet(job.calibration, job.text, job.source.config.vocab,
                         static_cast<size_t>(job.plan.context), job.progress));
  HX_ASSIGN_OR_RETURN(job.source,
                      SmoothModel(rounded, {.recipe = job.folded,
                                            .sequences = job.smoothed_by,
                                            .threads = job.options.threads,
                                            .progress = job.progress,
                                            .cache = job.cache.get(),
                                            .onto = &job.source}));
  job.calibration = {};
  if (quant::HasStaticRanges(job.recipe)) job.calibration.ids = job.smoothed_by;
  return OkStatus();
}

// Gives the model the rotations and factors of the recipe; weights of graphs
// that never run stay as they are.
Status Fold(Job& job) {
  if (job.stand_ins != nullptr) {
    job.source = RotateHeads(std::move(job.source), job.recipe.rotations);
    return OkStatus();
  }
  const bool smooths = quant::Smooths(job.folded);
  // Factors follow from the table, too, and are those of the recipe's graphs.
  std::optional<models::ModelSource> rounded;
  if (smooths && IsCompared(job.options)) {
    HX_ASSIGN_OR_RETURN(rounded,
                        RotateModel(job.source, job.folded, job.progress));
  }
  HX_ASSIGN_OR_RETURN(
      job.source, RotateModel(std::move(job.source), job.recipe, job.progress));
  if (smooths) {
    HX_RETURN_IF_ERROR(CheckBeforeSmoothing(job));
    return Smooth(job, rounded ? *rounded : job.source);
  }
  if (IsCompared(job.options)) job.calibration = {};
  return OkStatus();
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

// Where the module goes after each pass, when the user wants to see it.
PipelineOptions DumpOptions(const Job& job) {
  PipelineOptions options;
  const std::string& dir = job.options.dump_ir_dir;
  if (!dir.empty()) {
    options.dump = [&dir](const PassStage& stage, const ir::Module& now) {
      return DumpIr(dir, stage, now);
    };
  }
  return options;
}

struct BuiltGraphs {
  ir::Module module;
  TokenSequences calibrated_on;
};

// The graphs with their encodings, ready to be lowered. Static recipes give
// encodings to what the target's passes leave; the others to the weights alone,
// which passes hand on.
Result<BuiltGraphs> BuildGraphs(const Job& job) {
  job.progress.Begin("build graphs", "", 0);
  BuiltGraphs built;
  ir::Module& module = built.module;
  HX_ASSIGN_OR_RETURN(module, BuildFloat(job));
  HX_ASSIGN_OR_RETURN(const quant::ResolvedRecipe recipe,
                      ResolveFor(module, job.recipe, job.progress));
  HX_RETURN_IF_ERROR(CheckStatic(job, recipe));
  const QuantizeJob quantize = QuantizeJobOf(job);
  if (IsStatic(job.recipe)) {
    HX_RETURN_IF_ERROR(RunPipeline(module, kStaticPipeline, DumpOptions(job)));
    HX_ASSIGN_OR_RETURN(built.calibrated_on,
                        Quantize(module, recipe, quantize));
    ModelRounding(job.options.target, module);
  } else {
    HX_ASSIGN_OR_RETURN(built.calibrated_on,
                        Quantize(module, recipe, quantize));
    const std::string_view pipeline =
        job.options.taps ? kStaticPipeline : job.options.target.name;
    HX_RETURN_IF_ERROR(RunPipeline(module, pipeline, DumpOptions(job)));
  }
  if (built.calibrated_on.empty()) built.calibrated_on = job.smoothed_by;
  if (job.options.taps) {
    for (ir::Graph& graph : module.graphs) AddTaps(graph);
  }
  return built;
}

// How the graphs were quantized; the encodings for who asked for them.
Status AddQuantization(const Job& job, BuiltGraphs& built,
                       artifact::SegmentSink& sink, OutputFile* attrs) {
  HX_RETURN_IF_ERROR(
      AddQuantizationRecord({.recipe = quant::RecipeToJson(job.recipe),
                             .soc = job.options.target.soc,
                             .sequences = std::move(built.calibrated_on)},
                            sink));
  if (attrs == nullptr) return OkStatus();
  return attrs->Write(AsBytes(quant::EncodingsToJson(built.module)));
}

// The file for the encodings, opened before the work, so that a path that
// cannot be written costs nothing.
Result<std::optional<OutputFile>> OpenQuantAttrs(const Job& job) {
  const std::string& path = job.options.quant_attrs_path;
  if (path.empty()) return std::optional<OutputFile>();
  if (!quant::Quantizes(job.recipe)) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--quant-attrs: expected with a recipe that "
                             "quantizes, found {}",
                             Quoted(job.recipe.name))};
  }
  HX_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  return std::optional<OutputFile>(std::move(file));
}

// A manifest that says what `module` is; no graphs yet.
artifact::Manifest HeadOf(const Job& job, const ir::Module& module) {
  artifact::Manifest manifest = ManifestOf(job.source, job.plan.context);
  manifest.recipe = job.recipe.name;
  manifest.lookahead = job.plan.lookahead;
  manifest.weight_bytes = ir::WeightBytes(module);
  return manifest;
}

// The estimates of the graphs that `head` is about, as the artifact keeps them.
Status AddEstimate(const Job& job, const ir::Module& module,
                   const artifact::Manifest& head,
                   artifact::SegmentSink& sink) {
  if (job.options.estimate_scratch.empty()) return OkStatus();
  HX_ASSIGN_OR_RETURN(
      ModelEstimate estimate,
      EstimateGraphs(module, head, EstimateJobOf(job.options), job.progress));
  estimate.calibrated = true;
  return sink
      .Add({std::string(kEstimateSegment), artifact::SegmentKind::kText},
           AsBytes(DumpJson(EstimateToJson(estimate))))
      .status();
}

// Fills `sink`, and `attrs` unless null, and returns the manifest that goes
// with it.
Result<artifact::Manifest> EmitArtifact(const Job& job,
                                        artifact::SegmentSink& sink,
                                        OutputFile* attrs) {
  HX_ASSIGN_OR_RETURN(BuiltGraphs built, BuildGraphs(job));
  const ir::Module& module = built.module;
  artifact::Manifest manifest = HeadOf(job, module);
  if (quant::Quantizes(job.recipe)) {
    manifest.stage = NeedsStaticRecipe(job.options.target) ? "device" : "qdq";
    HX_RETURN_IF_ERROR(AddQuantization(job, built, sink, attrs));
  }
  HX_RETURN_IF_ERROR(AddText(job.text, sink, manifest));
  HX_RETURN_IF_ERROR(
      AddRopeTables(job.source, job.plan.context, sink, manifest));
  if (job.plan.embedding == models::EmbeddingPlace::kHost)
    HX_RETURN_IF_ERROR(AddEmbedding(job.source, sink, manifest));
  TargetOptions target = job.options.target;
  target.cache = job.cache.get();
  target.release_weights = [&checkpoint = *job.source.checkpoint] {
    for (const TensorView& tensor : checkpoint.tensors())
      checkpoint.DropPages(tensor);
  };
  HX_ASSIGN_OR_RETURN(manifest.graphs,
                      LowerForTarget(target, module, sink, job.progress));
  if (const auto& settings = job.options.attention_sink)
    HX_RETURN_IF_ERROR(AddEvictor(target, *settings, sink, manifest));
  HX_RETURN_IF_ERROR(AddEstimate(job, module, manifest, sink));
  return manifest;
}

}  // namespace

Status CompileToFile(const std::string& model_path, const std::string& out_path,
                     const CompileOptions& options, ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(Job job, Prepare(model_path, options, progress));
  HX_ASSIGN_OR_RETURN(artifact::FileSink sink,
                      artifact::FileSink::Create(out_path));
  HX_ASSIGN_OR_RETURN(auto attrs, OpenQuantAttrs(job));
  HX_RETURN_IF_ERROR(Fold(job));
  HX_ASSIGN_OR_RETURN(artifact::Manifest manifest,
                      EmitArtifact(job, sink, attrs ? &*attrs : nullptr));
  progress.Begin("finish file", "", 0);
  HX_RETURN_IF_ERROR(sink.Finish(std::move(manifest)));
  return attrs ? attrs->Commit() : OkStatus();
}

Result<std::shared_ptr<const artifact::Artifact>> CompileToMemory(
    const std::string& model_path, const CompileOptions& options,
    ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(Job job, Prepare(model_path, options, progress));
  HX_RETURN_IF_ERROR(Fold(job));
  artifact::MemorySink sink;
  HX_ASSIGN_OR_RETURN(artifact::Manifest manifest,
                      EmitArtifact(job, sink, nullptr));
  return sink.Finish(std::move(manifest), job.source.checkpoint);
}

Result<uint64_t> CheckCompile(const std::string& model_path,
                              const CompileOptions& options) {
  NullProgress quiet;
  HX_ASSIGN_OR_RETURN(const Job job, Prepare(model_path, options, quiet));
  HX_ASSIGN_OR_RETURN(const quant::ResolvedRecipe recipe, ResolveQuietly(job));
  if (NeedsRanges(recipe) || quant::Smooths(job.folded)) {
    HX_RETURN_IF_ERROR(
        MakeCalibrationSet(job.calibration, job.text, job.source.config.vocab,
                           static_cast<size_t>(job.plan.context), quiet)
            .status());
  } else if (!IsCompared(options)) {
    HX_RETURN_IF_ERROR(RefuseCalibration(recipe, job.calibration));
  }
  HX_RETURN_IF_ERROR(CheckStatic(job, recipe));
  return ModelId(job.source);
}

Result<HtpGraphs> BuildWithStandIns(const std::string& model_path,
                                    const CompileOptions& options,
                                    const StandIns& stand_ins,
                                    ProgressSink& progress) {
  CompileOptions for_htp = options;
  if (options.stage != Stage::kQdq) for_htp.target.name = "htp";
  HX_ASSIGN_OR_RETURN(Job job, Prepare(model_path, for_htp, progress));
  job.stand_ins = &stand_ins;
  HX_RETURN_IF_ERROR(Fold(job));
  HX_ASSIGN_OR_RETURN(BuiltGraphs built, BuildGraphs(job));
  artifact::Manifest manifest = HeadOf(job, built.module);
  return HtpGraphs{.module = std::move(built.module),
                   .manifest = std::move(manifest),
                   .recipe = std::move(job.recipe),
                   .checkpoint = job.source.checkpoint};
}

}  // namespace hexllm

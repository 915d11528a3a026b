#include "cli/eval_stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/model_argument.h"
#include "eval/certificate.h"
#include "models/model_source.h"

namespace hexllm::cli {
namespace {

// A step of at most half the context: the default shape where that is long
// enough.
LookaheadOptions LookaheadFor(uint32_t context) {
  constexpr uint32_t kDefaultStep = 64;
  if (context >= 2 * kDefaultStep) return {};
  const int64_t columns = std::max<uint32_t>(context / 4, 1);
  return {.ngram = 2, .window = columns, .gcap = columns};
}

Result<CompileOptions> OptionsFor(const EvalFlags& flags,
                                  const StageWish& wish) {
  CompileOptions compile;
  compile.source = flags.source;
  compile.max_context_len = wish.context;
  compile.prefill_logits = LogitsRows::kAll;
  compile.target = flags.target;
  compile.taps = wish.taps != nullptr;
  if (flags.mode == "lookahead") {
    compile.mode = ModelMode::kLookahead;
    compile.lookahead = LookaheadFor(wish.context);
  } else if (flags.mode == "kv" || wish.block == 1U) {
    compile.mode = ModelMode::kKv;
  } else if (wish.block) {
    compile.prefill_ar_len = *wish.block;
  }
  SetEngine(flags.engine, compile);
  HX_RETURN_IF_ERROR(ApplyQuantFlags(flags.quant, compile));
  compile.calibration.data_dir = flags.data_dir;
  if (wish.stage == "fp") {
    // Values are matched with those of the recipe's graphs.
    if (compile.taps) return compile;
    compile.recipe.clear();
    compile.calibration = {};
    compile.target.soc_is_named = false;
  }
  return compile;
}

bool IsLarge(artifact::SegmentKind kind) {
  return kind == artifact::SegmentKind::kWeights ||
         kind == artifact::SegmentKind::kQnnContext ||
         kind == artifact::SegmentKind::kEmbedding;
}

void AddEncodings(const std::vector<artifact::IoSpec>& values, Hasher& hasher) {
  for (const artifact::IoSpec& value : values) {
    const artifact::IoEncoding encoding = value.encoding.value_or(
        artifact::IoEncoding{.scale = 0, .zero_point = 0});
    hasher.AddNumber(value.dtype);
    hasher.AddNumber(encoding.scale);
    hasher.AddNumber(encoding.zero_point);
  }
}

bool HasBlocks(const artifact::Manifest& manifest) {
  return std::any_of(manifest.graphs.begin(), manifest.graphs.end(),
                     [](const artifact::GraphEntry& graph) {
                       return graph.kind == GraphKind::kPrefill;
                     });
}

std::optional<int32_t> FindSpecial(const artifact::Manifest& manifest,
                                   const Tokenizer& tokenizer,
                                   std::string_view name) {
  for (const artifact::NamedText& token : manifest.special_tokens) {
    if (token.name == name) return tokenizer.FindToken(token.text);
  }
  return std::nullopt;
}

// BOS, else an end token, as lm-evaluation-harness chooses.
std::optional<int32_t> PrefixOf(const artifact::Manifest& manifest,
                                const Tokenizer& tokenizer) {
  const auto bos = FindSpecial(manifest, tokenizer, "bos_token");
  if (bos) return bos;
  if (manifest.generation.bos_id) return manifest.generation.bos_id;
  const auto eos = FindSpecial(manifest, tokenizer, "eos_token");
  if (eos || manifest.generation.end_ids.empty()) return eos;
  return manifest.generation.end_ids.front();
}

}  // namespace

Result<uint32_t> WindowOf(const EvalFlags& flags) {
  const bool is_artifact = IsArtifact(flags.model);
  uint64_t context = 0;
  if (is_artifact) {
    HX_ASSIGN_OR_RETURN(const auto artifact,
                        artifact::Artifact::Open(flags.model));
    context = artifact->manifest().context_tokens;
  } else {
    HX_ASSIGN_OR_RETURN(const models::ModelSource source,
                        models::OpenModel(flags.model, flags.source));
    context = static_cast<uint64_t>(source.config.max_positions);
  }
  if (!flags.window)
    return static_cast<uint32_t>(std::min<uint64_t>(kDefaultWindow, context));
  if (*flags.window <= context) return *flags.window;
  return Error{
      ErrorCode::kUsage,
      fmt::format(
          "--window: expected at most {}, the {}, found {}", context,
          is_artifact ? "context of the artifact" : "positions of the model",
          *flags.window)};
}

Status CheckLaterStages(const EvalFlags& flags) {
  if (flags.stages.size() < 2) return OkStatus();
  HX_ASSIGN_OR_RETURN(const uint32_t window, WindowOf(flags));
  for (const std::string& stage : std::span(flags.stages).subspan(1)) {
    HX_ASSIGN_OR_RETURN(CompileOptions options,
                        OptionsFor(flags, {.stage = stage, .context = window}));
    HX_RETURN_IF_ERROR(CheckStageCompiles(
        {flags.model, flags.checkpoint, std::move(options)}, stage));
  }
  return OkStatus();
}

Result<OpenedStage> OpenEvalStage(const EvalFlags& flags, const StageWish& wish,
                                  ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(CompileOptions compile, OptionsFor(flags, wish));
  OpenedStage opened;
  HX_ASSIGN_OR_RETURN(opened.artifact, OpenStage({flags.model, flags.checkpoint,
                                                  std::move(compile)},
                                                 wish.stage, progress));
  SessionOptions options;
  if (wish.taps != nullptr) options.on_tap = wish.taps->Sink();
  if (flags.mode == "kv") options.prompt_step_tokens = 1;
  options.prompt_in_lookahead_graph = flags.mode == "lookahead";
  if (flags.mode == "hybrid" && !HasBlocks(opened.artifact->manifest())) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--mode hybrid: {} has no prefill graph; compile "
                             "it with --model-mode hybrid",
                             opened.artifact->path())};
  }
  HX_ASSIGN_OR_RETURN(opened.engine,
                      CreateEngineFor(*opened.artifact, flags.engine));
  HX_ASSIGN_OR_RETURN(
      opened.session,
      Session::Create({opened.artifact, opened.engine.get(), options}));
  if (!flags.no_self_test) HX_RETURN_IF_ERROR(SelfTest(*opened.session));
  return opened;
}

void AddRecipe(const artifact::Artifact& artifact, EvalResult& result) {
  const auto segment = artifact.FindSegment("recipe");
  const std::string& stage = artifact.manifest().stage;
  const bool known = std::any_of(
      result.recipes.begin(), result.recipes.end(),
      [&](const StageRecipe& recipe) { return recipe.stage == stage; });
  if (segment && !known)
    result.recipes.push_back(
        {stage, std::string(AsText(artifact.Segment(*segment)))});
}

Digest IdentityOf(const artifact::Artifact& artifact) {
  const artifact::Manifest& manifest = artifact.manifest();
  Hasher hasher;
  hasher.AddNumber(manifest.model_id);
  hasher.Add(manifest.stage);
  hasher.Add(manifest.recipe);
  for (const artifact::GraphEntry& graph : manifest.graphs) {
    AddEncodings(graph.inputs, hasher);
    AddEncodings(graph.outputs, hasher);
  }
  for (uint32_t i = 0; i < manifest.segments.size(); ++i) {
    const artifact::SegmentInfo& segment = manifest.segments[i];
    hasher.Add(segment.name);
    if (segment.checksum) {
      hasher.AddNumber(*segment.checksum);
    } else if (!IsLarge(segment.kind)) {
      hasher.Add(artifact.Segment(i));
    }
  }
  return hasher.Finish();
}

uint32_t LargestStep(const artifact::Manifest& manifest) {
  uint32_t most = 1;
  for (const artifact::GraphEntry& graph : manifest.graphs)
    most = std::max(most, graph.step_tokens);
  return most;
}

Result<TaskTokens> TaskTokensOf(const artifact::Manifest& manifest,
                                const Tokenizer& tokenizer) {
  TaskTokens tokens{.tokenizer = tokenizer,
                    .prefix = PrefixOf(manifest, tokenizer)};
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> of_nothing,
                      tokenizer.Encode("", AddSpecial::kYes));
  tokens.adds_prefix = tokens.prefix && !of_nothing.empty() &&
                       of_nothing.front() == *tokens.prefix;
  return tokens;
}

}  // namespace hexllm::cli

#include "cli/eval_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/eval_stages.h"
#include "cli/ids_argument.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "eval/certificate.h"
#include "eval/report_text.h"
#include "eval/score.h"
#include "eval/taps.h"
#include "runtime/artifact_text.h"
#include "text/utf8.h"

namespace hexllm::cli {
namespace {

// Tokens of a step in what is compiled to be compared: taps take memory.
constexpr uint32_t kBlock = 32;

// True when the graphs have outputs of a debug compile.
bool HasTaps(const artifact::Manifest& manifest) {
  return std::any_of(
      manifest.graphs.begin(), manifest.graphs.end(), [](const auto& graph) {
        return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                           [](const artifact::IoSpec& output) {
                             return output.role.kind == RoleKind::kTap;
                           });
      });
}

Error FloatAlone() {
  return Error{ErrorCode::kUsage,
               "--sqnr, --bisect: expected a stage qdq or device, or a recipe, "
               "found fp alone"};
}

// The prompt for a context of `most` tokens.
Result<std::vector<int32_t>> ReadPrompt(const EvalFlags& flags,
                                        const artifact::Artifact& artifact,
                                        uint32_t most) {
  std::vector<int32_t> ids;
  if (!flags.ids.empty()) {
    HX_ASSIGN_OR_RETURN(ids, ParseIds(flags.ids));
  } else {
    HX_ASSIGN_OR_RETURN(const Tokenizer tokenizer, TokenizerOf(artifact));
    HX_ASSIGN_OR_RETURN(
        ids,
        tokenizer.Encode(flags.prompt.empty() ? CertificateText()
                                              : std::string_view(flags.prompt),
                         AddSpecial::kYes));
    // The built-in text is cut to what fits, a given one is not.
    if (flags.prompt.empty() && ids.size() > most) ids.resize(most);
  }
  const auto usage = [](std::string message) {
    return Error{ErrorCode::kUsage, std::move(message)};
  };
  if (ids.empty() || ids.size() > most) {
    return usage(fmt::format(
        "--prompt, --tokens: expected 1 to {} tokens, found {}{}", most,
        ids.size(),
        flags.window || IsArtifact(flags.model) ? "" : "; see --window"));
  }
  const uint32_t vocab = artifact.manifest().vocab_size;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<uint32_t>(ids[i]) < vocab) continue;
    return usage(fmt::format(
        "--tokens: expected ids below {}, the vocabulary's size, found {} at "
        "{}",
        vocab, ids[i], i));
  }
  return ids;
}

// One stage and what its inner values were.
struct Compared {
  std::unique_ptr<TapRecorder> recorder = std::make_unique<TapRecorder>();
  OpenedStage stage;
};

class Comparison {
 public:
  Comparison(const EvalFlags& flags, const PromptPlan& prompt, EvalFiles& files,
             EvalResult& result, ProgressSink& progress)
      : flags_(flags),
        prompt_(prompt),
        files_(files),
        result_(result),
        progress_(progress) {}

  Status Run(const std::string& stage);

 private:
  Result<Compared> Open(const std::string& stage);
  Result<StageComparison> CompareLogits(const Compared& reference,
                                        const Compared& x);
  Status CompareInside(const Compared& reference, const Compared& x,
                       StageComparison& comparison);
  Status Bisect(const Compared& reference, const Compared& x);

  const EvalFlags& flags_;
  const PromptPlan& prompt_;
  EvalFiles& files_;
  EvalResult& result_;
  ProgressSink& progress_;
};

Result<Compared> Comparison::Open(const std::string& stage) {
  Compared compared;
  HX_ASSIGN_OR_RETURN(compared.stage,
                      OpenEvalStage(flags_,
                                    {.stage = stage,
                                     .context = prompt_.context,
                                     .block = prompt_.block,
                                     .taps = compared.recorder.get()},
                                    progress_));
  return compared;
}

Result<StageComparison> Comparison::CompareLogits(const Compared& reference,
                                                  const Compared& x) {
  std::vector<std::vector<float>> rows;
  HX_RETURN_IF_ERROR(reference.stage.session->Logits(
      prompt_.ids, [&](uint32_t position, std::span<const float> row) {
        rows.emplace_back(row.begin(), row.end());
        return CheckFinite(row, position);
      }));
  LogitsComparer comparer;
  const auto add = [&](uint32_t position,
                       std::span<const float> row) -> Status {
    HX_RETURN_IF_ERROR(CheckFinite(row, position));
    comparer.Add(rows[position], row);
    return OkStatus();
  };
  HX_RETURN_IF_ERROR(x.stage.session->Logits(prompt_.ids, add));
  StageComparison comparison = std::move(comparer).Finish();
  comparison.stage = x.stage.artifact->manifest().stage;
  comparison.reference = reference.stage.artifact->manifest().stage;
  comparison.recipe = x.stage.artifact->manifest().recipe;
  return comparison;
}

Status Comparison::CompareInside(const Compared& reference, const Compared& x,
                                 StageComparison& comparison) {
  if (!HasTaps(x.stage.artifact->manifest())) {
    progress_.Note(
        fmt::format("{} was not compiled with --taps: the SQNR of "
                    "layers is left out",
                    x.stage.artifact->path()));
    return OkStatus();
  }
  HX_ASSIGN_OR_RETURN(
      const std::vector<TapComparison> values,
      CompareTaps({*reference.stage.session, *reference.recorder},
                  {*x.stage.session, *x.recorder}, prompt_.ids, prompt_.block));
  comparison.layers = LayerOutputs(values);
  return OkStatus();
}

Status Comparison::Bisect(const Compared& reference, const Compared& x) {
  Bisection bisection{.stage = x.stage.artifact->manifest().stage,
                      .reference = reference.stage.artifact->manifest().stage,
                      .recipe = x.stage.artifact->manifest().recipe,
                      .tolerance_db = flags_.tolerance_db,
                      .values = {}};
  HX_ASSIGN_OR_RETURN(
      bisection.values,
      CompareTaps({*reference.stage.session, *reference.recorder},
                  {*x.stage.session, *x.recorder}, prompt_.ids, prompt_.block));
  bisection.first = FindDeparture(bisection.values, flags_.tolerance_db);
  HX_RETURN_IF_ERROR(files_.Say(BisectionLine(bisection)));
  result_.bisections.push_back(std::move(bisection));
  return OkStatus();
}

Status Comparison::Run(const std::string& stage) {
  HX_ASSIGN_OR_RETURN(const Compared x, Open(stage));
  const artifact::Manifest& manifest = x.stage.artifact->manifest();
  result_.model = manifest.model_name;
  result_.model_id = fmt::format("{:016x}", manifest.model_id);
  result_.prompt = prompt_.ids;
  AddRecipe(*x.stage.artifact, result_);
  if (manifest.stage == "fp") return FloatAlone();
  const bool from_qdq = flags_.bisect && manifest.stage == "device";
  if (flags_.sqnr || !from_qdq) {
    HX_ASSIGN_OR_RETURN(const Compared fp, Open("fp"));
    if (flags_.sqnr) {
      HX_ASSIGN_OR_RETURN(StageComparison comparison, CompareLogits(fp, x));
      HX_RETURN_IF_ERROR(CompareInside(fp, x, comparison));
      HX_RETURN_IF_ERROR(files_.Say(ComparisonLine(comparison)));
      result_.comparisons.push_back(std::move(comparison));
    }
    if (flags_.bisect && !from_qdq) return Bisect(fp, x);
  }
  if (!from_qdq) return OkStatus();
  HX_ASSIGN_OR_RETURN(const Compared qdq, Open("qdq"));
  return Bisect(qdq, x);
}

}  // namespace

Status CheckComparisons(const EvalFlags& flags) {
  const auto usage = [](const char* message) {
    return Error{ErrorCode::kUsage, message};
  };
  if (std::isnan(flags.tolerance_db))
    return usage("--tolerance: expected -200 to 200 dB, found nan");
  const bool has_text = !flags.prompt.empty() || !flags.ids.empty();
  if (!flags.sqnr && !flags.bisect) {
    return has_text ? usage(
                          "--prompt, --tokens: expected with --sqnr or "
                          "--bisect, found neither")
                    : OkStatus();
  }
  if (!flags.prompt.empty() && !flags.ids.empty())
    return usage("eval: expected either --prompt or --tokens");
  if (!IsValidUtf8(flags.prompt))
    return usage("--prompt: expected UTF-8, found other bytes");
  const bool only_float = flags.stages.size() == 1 && flags.stages[0] == "fp";
  const bool no_stage = flags.stages.empty() && flags.quant.recipe.empty() &&
                        !IsArtifact(flags.model);
  return only_float || no_stage ? FloatAlone() : OkStatus();
}

Result<PromptPlan> PlanPrompt(const EvalFlags& flags, ProgressSink& progress) {
  PromptPlan plan;
  if (IsArtifact(flags.model)) {
    HX_ASSIGN_OR_RETURN(const auto artifact,
                        artifact::Artifact::Open(flags.model));
    const artifact::Manifest& manifest = artifact->manifest();
    if (manifest.stage == "fp") return FloatAlone();
    const bool from_qdq = manifest.stage == "device" && !flags.sqnr;
    HX_RETURN_IF_ERROR(CheckStageOpens({flags.model, flags.checkpoint, {}},
                                       from_qdq ? "qdq" : "fp", flags.engine));
    if (flags.bisect && !HasTaps(manifest)) {
      return Error{ErrorCode::kUsage,
                   fmt::format("--bisect: expected an artifact with its inner "
                               "values, found none in {}; compile it with "
                               "--taps",
                               flags.model)};
    }
    plan.context = manifest.context_tokens;
    plan.block = LargestStep(manifest);
    uint32_t most = plan.context;
    if (flags.window) {
      HX_ASSIGN_OR_RETURN(most, WindowOf(flags));
    }
    HX_ASSIGN_OR_RETURN(plan.ids, ReadPrompt(flags, *artifact, most));
    return plan;
  }
  // The float graph is cheap, and has the tokenizer.
  HX_ASSIGN_OR_RETURN(plan.context, WindowOf(flags));
  HX_ASSIGN_OR_RETURN(
      const OpenedStage opened,
      OpenEvalStage(flags, {.stage = "fp", .context = plan.context}, progress));
  HX_ASSIGN_OR_RETURN(plan.ids,
                      ReadPrompt(flags, *opened.artifact, plan.context));
  plan.block = std::min({kBlock, plan.context,
                         std::max(static_cast<uint32_t>(plan.ids.size()), 2U)});
  return plan;
}

Status RunComparisons(const EvalFlags& flags, const PromptPlan& prompt,
                      EvalFiles& files, EvalResult& result,
                      ProgressSink& progress) {
  Comparison comparison(flags, prompt, files, result, progress);
  const std::vector<std::string> stages =
      flags.stages.empty() ? std::vector<std::string>{""} : flags.stages;
  for (const std::string& stage : stages) {
    if (stage != "fp") HX_RETURN_IF_ERROR(comparison.Run(stage));
  }
  return OkStatus();
}

}  // namespace hexllm::cli

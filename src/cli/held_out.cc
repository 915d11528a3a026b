#include "cli/held_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/engines.h"
#include "cli/output.h"
#include "eval/compare.h"
#include "eval/held_out_text.h"
#include "eval/score.h"
#include "models/model_source.h"
#include "runtime/artifact_text.h"
#include "runtime/session.h"

namespace hexllm::cli {
namespace {

// C and T of what is compiled.
struct Lengths {
  int64_t context;
  int64_t block;
};

// What of the user's options has a say in the numbers, and nothing else.
CompileOptions Relevant(const CompileOptions& options, const Lengths& lengths) {
  CompileOptions relevant;
  relevant.source = options.source;
  relevant.target.soc = options.target.soc;
  relevant.calibration = options.calibration;
  relevant.threads = options.threads;
  relevant.max_context_len = lengths.context;
  relevant.prefill_ar_len = lengths.block;
  relevant.prefill_logits = LogitsRows::kAll;
  relevant.cache_dir = options.cache_dir;
  return relevant;
}

// Visits the logits of all positions.
Status RunRows(const std::shared_ptr<const artifact::Artifact>& artifact,
               Engine& engine, std::span<const int32_t> ids,
               const LogitsSink& visit) {
  HX_ASSIGN_OR_RETURN(const auto session,
                      Session::Create({artifact, &engine, {}}));
  return session->Logits(
      ids, [&](uint32_t position, std::span<const float> row) -> Status {
        HX_RETURN_IF_ERROR(CheckFinite(row, position));
        return visit(position, row);
      });
}

// Of sums of negative log-likelihoods over all tokens but the first.
double Perplexity(double nll, size_t tokens) {
  return std::exp(nll / static_cast<double>(tokens - 1));
}

}  // namespace

JudgedText BuiltinHeldOutText() {
  return {"the built-in text", std::string(kHeldOutText)};
}

Result<HeldOut> HeldOut::Open(const std::string& model,
                              const CompileOptions& options,
                              const JudgedText& text, ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const models::ModelSource source,
                      models::OpenModel(model, options.source));
  const int64_t context = std::min<int64_t>(static_cast<int64_t>(kMostTokens),
                                            source.config.max_positions);
  const Lengths lengths{context, std::min(kDefaultPrefillArLen, context)};
  HX_ASSIGN_OR_RETURN(ScratchFolder cache,
                      ScratchFolder::Create(TemporaryFolder()));
  HeldOut held_out(model, Relevant(options, lengths), std::move(cache));
  HX_ASSIGN_OR_RETURN(held_out.engine_,
                      CreateEngine("cpu", {.threads = options.threads}));
  HX_RETURN_IF_ERROR(held_out.RunFloat(text, progress));
  return held_out;
}

Status HeldOut::RunFloat(const JudgedText& text, ProgressSink& progress) {
  CompileOptions options = options_;
  options.stage = Stage::kFloat;
  options.calibration = {};
  options.cache_dir.clear();
  HX_ASSIGN_OR_RETURN(const auto artifact,
                      CompileToMemory(model_, options, progress));
  HX_ASSIGN_OR_RETURN(const Tokenizer tokenizer, TokenizerOf(*artifact));
  HX_ASSIGN_OR_RETURN(ids_, tokenizer.Encode(text.text, AddSpecial::kYes));
  if (ids_.size() < 2) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{}: expected two tokens or more to judge recipes "
                             "on, found {}; give a longer text",
                             text.name, ids_.size())};
  }
  const size_t context = artifact->manifest().context_tokens;
  if (context < 2) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: expected a context of two tokens or more to "
                             "judge recipes in, found {}",
                             model_, context)};
  }
  ids_.resize(std::min(ids_.size(), context));
  double nll = 0;
  HX_RETURN_IF_ERROR(RunRows(
      artifact, *engine_, ids_, [&](uint32_t at, std::span<const float> row) {
        rows_.emplace_back(row.begin(), row.end());
        if (at + 1 < ids_.size())
          nll += NegativeLogLikelihood(row, ids_[at + 1]);
        return OkStatus();
      }));
  float_perplexity_ = Perplexity(nll, ids_.size());
  return OkStatus();
}

Result<HeldOutFigures> HeldOut::Measure(const quant::Recipe& recipe,
                                        ProgressSink& progress) {
  CompileOptions options = options_;
  options.stage = Stage::kQdq;
  options.recipe_json = quant::RecipeToJson(recipe);
  if (options.cache_dir.empty()) options.cache_dir = cache_.path();
  NullProgress quiet;  // it would say the same again and again
  HX_ASSIGN_OR_RETURN(const auto artifact,
                      CompileToMemory(model_, options, quiet));
  progress.Begin("measure " + recipe.name, "", 0);
  LogitsComparer comparer;
  double nll = 0;
  HX_RETURN_IF_ERROR(RunRows(
      artifact, *engine_, ids_, [&](uint32_t at, std::span<const float> row) {
        comparer.Add(rows_[at], row);
        if (at + 1 < ids_.size())
          nll += NegativeLogLikelihood(row, ids_[at + 1]);
        return OkStatus();
      }));
  return HeldOutFigures{.mean_kld = std::move(comparer).Finish().mean_kld,
                        .perplexity = Perplexity(nll, ids_.size())};
}

}  // namespace hexllm::cli

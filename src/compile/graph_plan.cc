#include "compile/graph_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "compile/targets.h"

namespace hexllm {
namespace {

// Of n-gram, window and guesses each.
constexpr int64_t kMostLookahead = 1024;

Error Usage(std::string message) {
  return Error{ErrorCode::kUsage, std::move(message)};
}

Status ChooseLengths(const CompileOptions& options, int64_t max_positions,
                     GraphPlan& plan) {
  plan.context = options.max_context_len.value_or(
      std::min(kDefaultContextLen, max_positions));
  if (plan.context < 1 || plan.context > max_positions) {
    return Usage(fmt::format(
        "--max-context-len: expected 1 to {}, the model's longest, found {}",
        max_positions, plan.context));
  }
  if (options.mode == ModelMode::kKv && options.prefill_ar_len) {
    return Usage(
        "--prefill-ar-len: expected with --model-mode hybrid or lookahead, "
        "found kv");
  }
  plan.prefill = options.prefill_ar_len.value_or(
      std::min(kDefaultPrefillArLen, plan.context));
  if (plan.prefill < 1 || plan.prefill > plan.context) {
    return Usage(fmt::format(
        "--prefill-ar-len: expected 1 to {}, the context length, found {}",
        plan.context, plan.prefill));
  }
  if (options.mode == ModelMode::kKv) plan.prefill = 1;
  return OkStatus();
}

int64_t LookaheadTokens(const artifact::LookaheadShape& shape) {
  return (int64_t{shape.window} + shape.guesses) * (int64_t{shape.ngram} - 1);
}

Result<uint32_t> LookaheadNumber(const char* flag, int64_t number,
                                 std::pair<int64_t, int64_t> bounds) {
  if (number >= bounds.first && number <= bounds.second)
    return static_cast<uint32_t>(number);
  return Usage(fmt::format("{}: expected {} to {}, found {}", flag,
                           bounds.first, bounds.second, number));
}

Status ChooseLookahead(const CompileOptions& options, GraphPlan& plan) {
  const LookaheadOptions& wish = options.lookahead;
  if (options.mode != ModelMode::kLookahead) {
    if (!wish.ngram && !wish.window && !wish.gcap) return OkStatus();
    return Usage(
        "--ngram, --window and --gcap: expected with --model-mode lookahead "
        "only");
  }
  artifact::LookaheadShape shape;
  HX_ASSIGN_OR_RETURN(
      shape.ngram,
      LookaheadNumber("--ngram", wish.ngram.value_or(5), {2, kMostLookahead}));
  HX_ASSIGN_OR_RETURN(shape.window,
                      LookaheadNumber("--window", wish.window.value_or(8),
                                      {1, kMostLookahead}));
  HX_ASSIGN_OR_RETURN(
      shape.guesses,
      LookaheadNumber("--gcap", wish.gcap.value_or(8), {1, kMostLookahead}));
  if (LookaheadTokens(shape) >= plan.context) {
    return Usage(fmt::format(
        "--ngram, --window, --gcap: a lookahead step has (window + gcap)(ngram "
        "- 1) tokens: expected fewer than {}, the context length, found {}",
        plan.context, LookaheadTokens(shape)));
  }
  plan.lookahead = shape;
  return OkStatus();
}

}  // namespace

Result<GraphPlan> PlanGraphs(const CompileOptions& options,
                             const models::DecoderConfig& config) {
  GraphPlan plan;
  HX_RETURN_IF_ERROR(ChooseLengths(options, config.max_positions, plan));
  HX_RETURN_IF_ERROR(ChooseLookahead(options, plan));
  plan.embedding = options.embedding.value_or(DefaultEmbedding(options.target));
  plan.shards = options.num_sharding;
  if (plan.shards < 1 || plan.shards > config.layers) {
    return Usage(fmt::format(
        "--num-sharding: expected 1 to {}, the model's layers, found {}",
        config.layers, plan.shards));
  }
  return plan;
}

std::vector<models::GraphRequest> GraphRequests(const GraphPlan& plan,
                                                LogitsRows prefill_logits) {
  std::vector<models::GraphRequest> requests;
  const auto add = [&](models::GraphRequest request) {
    request.context_tokens = plan.context;
    request.embedding = plan.embedding;
    request.shards = plan.shards;
    for (request.shard = 0; request.shard < plan.shards; ++request.shard)
      requests.push_back(request);
  };
  if (plan.prefill > 1) {
    add({.kind = GraphKind::kPrefill,
         .step_tokens = plan.prefill,
         .logits = prefill_logits});
  }
  if (plan.lookahead) {
    add({.kind = GraphKind::kLookahead,
         .step_tokens = LookaheadTokens(*plan.lookahead),
         .logits = LogitsRows::kAll});
  }
  add({.kind = GraphKind::kKv, .step_tokens = 1, .logits = LogitsRows::kAll});
  return requests;
}

}  // namespace hexllm

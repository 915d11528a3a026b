#include "runtime/token_generator.h"

#include <algorithm>

#include "base/check.h"

namespace hexllm {

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndToken:
      return "end_token";
    case FinishReason::kMaxNewTokens:
      return "max_new_tokens";
    case FinishReason::kMaxSeqLen:
      return "max_seq_len";
    case FinishReason::kContextFull:
      return "context_full";
    case FinishReason::kStopped:
      return "stopped";
  }
  HX_CHECK(false);  // every reason has a name above
}

TokenGenerator::TokenGenerator(Sequence* sequence, DecoderRunner* runner,
                               Sampler* sampler,
                               std::span<const int32_t> end_ids)
    : sequence_(sequence),
      runner_(runner),
      sampler_(sampler),
      end_ids_(end_ids) {}

Result<GenerateResult> TokenGenerator::Generate(const GenerateOptions& options,
                                                const TokenCallback& on_token) {
  GenerateResult result;
  for (;;) {
    if (const auto limit = FindLimit(options, result.new_tokens)) {
      result.reason = *limit;
      return result;
    }
    HX_RETURN_IF_ERROR(RunPending());
    HX_ASSIGN_OR_RETURN(const int32_t id,
                        sampler_->Sample({.logits = sequence_->logits,
                                          .history = sequence_->ids,
                                          .position = sequence_->kv.tokens()},
                                         options.sampler));
    if (!options.ignore_end_ids && IsEnd(id)) {
      result.reason = FinishReason::kEndToken;
      result.end_id = id;
      return result;
    }
    sequence_->ids.push_back(id);
    ++result.new_tokens;
    HX_ASSIGN_OR_RETURN(const TokenAction action, on_token(id));
    if (action == TokenAction::kStop) {
      result.reason = FinishReason::kStopped;
      return result;
    }
  }
}

std::optional<FinishReason> TokenGenerator::FindLimit(
    const GenerateOptions& options, uint32_t new_tokens) const {
  const size_t length = sequence_->ids.size();
  if (options.max_new_tokens && new_tokens >= *options.max_new_tokens)
    return FinishReason::kMaxNewTokens;
  const size_t context = runner_->past_columns() + runner_->step_tokens();
  const bool pending_runs = length == sequence_->kv.tokens() ||
                            sequence_->kv.tokens() <= runner_->past_columns();
  if (length >= context || !pending_runs) return FinishReason::kContextFull;
  if (options.max_seq_len && length >= *options.max_seq_len)
    return FinishReason::kMaxSeqLen;
  return std::nullopt;
}

Status TokenGenerator::RunPending() {
  const auto pending =
      std::span(sequence_->ids).subspan(sequence_->kv.tokens());
  if (pending.empty()) return OkStatus();
  HX_RETURN_IF_ERROR(runner_->Step(pending));
  runner_->Commit();
  sequence_->logits =
      runner_->Logits(static_cast<uint32_t>(pending.size()) - 1);
  return OkStatus();
}

bool TokenGenerator::IsEnd(int32_t id) const {
  return std::find(end_ids_.begin(), end_ids_.end(), id) != end_ids_.end();
}

}  // namespace hexllm

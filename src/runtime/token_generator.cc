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

TokenGenerator::TokenGenerator(Sequence* sequence, DecodeSteps* steps,
                               Sampler* sampler,
                               std::span<const int32_t> end_ids)
    : sequence_(sequence),
      steps_(steps),
      sampler_(sampler),
      end_ids_(end_ids) {}

Result<GenerateResult> TokenGenerator::Generate(const GenerateOptions& options,
                                                const TokenCallback& on_token) {
  GenerateResult result;
  steps_->Begin();
  for (;;) {
    if (const auto limit = FindLimit(options, result.new_tokens)) {
      result.reason = *limit;
      return result;
    }
    HX_RETURN_IF_ERROR(steps_->Run());
    HX_ASSIGN_OR_RETURN(const int32_t id,
                        sampler_->Sample({.logits = sequence_->logits,
                                          .history = sequence_->ids,
                                          .position = RunTokens(*sequence_)},
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
  const size_t length = TextTokens(*sequence_);
  if (options.max_new_tokens && new_tokens >= *options.max_new_tokens)
    return FinishReason::kMaxNewTokens;
  if (length >= steps_->MaxTokens() || !steps_->HasRoom())
    return FinishReason::kContextFull;
  if (options.max_seq_len && length >= *options.max_seq_len)
    return FinishReason::kMaxSeqLen;
  return std::nullopt;
}

bool TokenGenerator::IsEnd(int32_t id) const {
  return std::find(end_ids_.begin(), end_ids_.end(), id) != end_ids_.end();
}

}  // namespace hexllm

#include "runtime/prompt_processor.h"

#include <algorithm>

#include "base/check.h"

namespace hexllm {

PromptProcessor::PromptProcessor(const PromptConfig& config)
    : sequence_(config.sequence),
      block_(config.block),
      single_(config.single),
      wide_(config.wide) {
  HX_CHECK(single_->logits_rows() != LogitsRows::kNone);
}

uint32_t PromptProcessor::MaxTokens(uint32_t past) const {
  if (sequence_->sink) return UINT32_MAX;
  const uint32_t columns = single_->past_columns();
  return past > columns ? past : columns + single_->step_tokens();
}

uint32_t PromptProcessor::MaxTokensWithLogits(uint32_t past) const {
  if (sequence_->sink) return UINT32_MAX;
  // With the last row alone a step takes one token, whatever its T.
  if (single_->logits_rows() == LogitsRows::kAll) return MaxTokens(past);
  return std::max(past, single_->past_columns() + 1);
}

void PromptProcessor::Append(std::span<const int32_t> ids) {
  sequence_->ids.insert(sequence_->ids.end(), ids.begin(), ids.end());
  if (sequence_->kv.tokens() == 0)
    ChooseRope(static_cast<uint32_t>(sequence_->ids.size()));
}

void PromptProcessor::ChooseRope(uint32_t prompt_tokens) {
  prompt_tokens_ = prompt_tokens;
  for (DecoderRunner* runner : {block_, single_, wide_})
    if (runner != nullptr) runner->ChooseRope(prompt_tokens);
  if (sequence_->sink) sequence_->sink->ChooseRope(prompt_tokens);
}

Status PromptProcessor::Run(std::span<const int32_t> ids) {
  HX_CHECK(sequence_->ids.size() + ids.size() <=
           MaxTokens(sequence_->kv.tokens()));
  Append(ids);
  return RunPending(nullptr);
}

Status PromptProcessor::RunWithLogits(std::span<const int32_t> ids,
                                      const LogitsSink& sink) {
  HX_CHECK(sequence_->ids.size() + ids.size() <=
           MaxTokensWithLogits(sequence_->kv.tokens()));
  Append(ids);
  return RunPending(&sink);
}

PromptProcessor::Step PromptProcessor::NextStep(uint32_t left,
                                                bool every_row) const {
  const uint32_t past = sequence_->kv.tokens();
  // What follows a step must find room for one of `single`.
  const auto shorten = [&](uint32_t n) {
    if (sequence_->sink) n = std::min(n, sequence_->kv.capacity() - past);
    return n < left ? std::min(n, single_->past_columns() - past) : n;
  };
  const LogitsRows block_rows = block_->logits_rows();
  const bool block_serves = !every_row || block_rows == LogitsRows::kAll;
  if (left > 1 && block_serves && past <= block_->past_columns()) {
    uint32_t n = std::min(block_->step_tokens(), left);
    if (block_rows == LogitsRows::kNone) n = std::min(n, left - 1);
    n = shorten(n);
    if (n > 0) return {block_, n};
  }
  const bool one_by_one =
      every_row && single_->logits_rows() == LogitsRows::kLast;
  return {single_,
          shorten(one_by_one ? 1 : std::min(single_->step_tokens(), left))};
}

Status PromptProcessor::RunPending(const LogitsSink* sink) {
  KvManager& kv = sequence_->kv;
  while (kv.tokens() < sequence_->ids.size()) {
    HX_RETURN_IF_ERROR(MakeRoom(*sequence_, 1));
    const auto rest = std::span(sequence_->ids).subspan(kv.tokens());
    const Step step =
        NextStep(static_cast<uint32_t>(rest.size()), sink != nullptr);
    HX_RETURN_IF_ERROR(step.runner->Step(rest.first(step.tokens)));
    const uint32_t position = RunTokens(*sequence_);
    step.runner->Commit();
    for (uint32_t i = 0; sink != nullptr && i < step.tokens; ++i)
      HX_RETURN_IF_ERROR((*sink)(position + i, step.runner->Logits(i)));
    if (step.tokens == rest.size())
      sequence_->logits = step.runner->Logits(step.tokens - 1);
  }
  return OkStatus();
}

}  // namespace hexllm

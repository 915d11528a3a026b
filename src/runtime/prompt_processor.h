// Runs known tokens through the model: prompts, and texts whose logits are
// wanted. Used by Session. It draws nothing: that is the token generator.
//
// Two runners, which may be the same one: `block` for T tokens a step, `single`
// for what blocks cannot do. With T = 4, C = 10 (a block needs 4 of the 10
// columns: at most 6 past tokens) a prompt of 9 tokens goes
//
//   past 0   block   t0 t1 t2 t3
//   past 4   block   t4 t5 t6 t7
//   past 8   single  t8             8 > 6: no room for a block
//
// and one of 6 tokens ends with a block padded at the front: "-- -- t4 t5".
// A lone last token goes through `single`, as does the last one of a prompt
// whose blocks have no logits. Without a graph of T = 1 `single` is a block
// graph as well; then the first block is cut short so that the last still fits.
//
// longrope: the whole prompt's length chooses the factors before its first
// step. Later tokens keep them, also beyond the limit: cached keys were rotated
// with them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"
#include "runtime/decoder_runner.h"
#include "runtime/sequence.h"

namespace hexllm {

// Called for each position in order. The row [V] is valid during the call. An
// error ends the run and is returned as it is.
using LogitsSink =
    std::function<Status(uint32_t position, std::span<const float> logits)>;

// All borrowed; must outlive the processor.
struct PromptConfig {
  Sequence* sequence = nullptr;
  DecoderRunner* block = nullptr;
  DecoderRunner* single = nullptr;  // has logits of the last row at least
  DecoderRunner* wide = nullptr;    // runs no prompts; may be null
};

class PromptProcessor {
 public:
  explicit PromptProcessor(const PromptConfig& config);

  // The longest sequence that Run (RunWithLogits) can reach from `past` tokens;
  // `past` when it can run none.
  uint32_t MaxTokens(uint32_t past) const;
  uint32_t MaxTokensWithLogits(uint32_t past) const;

  // True when the keys in the cache are those that a prompt of `tokens` tokens
  // would have: with longrope, RoPE depends on the length of the first prompt.
  bool SharesRope(uint32_t tokens) const {
    return single_->HasSameRope(prompt_tokens_, tokens);
  }

  // The length of the first prompt, which chose the RoPE rows of all runners;
  // and the choice of a restored sequence.
  uint32_t prompt_tokens() const { return prompt_tokens_; }
  void ChooseRope(uint32_t prompt_tokens);

  // Appends `ids` (valid ids, within MaxTokens, checked) and runs all tokens
  // that the cache lacks. Leaves the last one's logits in the sequence. Errors
  // are the engine's; the sequence is then undefined.
  Status Run(std::span<const int32_t> ids);

  // The same (within MaxTokensWithLogits), with `sink` called for each token.
  Status RunWithLogits(std::span<const int32_t> ids, const LogitsSink& sink);

 private:
  struct Step {
    DecoderRunner* runner;
    uint32_t tokens;
  };
  Step NextStep(uint32_t left, bool every_row) const;
  void Append(std::span<const int32_t> ids);
  Status RunPending(const LogitsSink* sink);

  Sequence* sequence_;
  DecoderRunner* block_;
  DecoderRunner* single_;
  DecoderRunner* wide_;
  // Of the sequence's first prompt, which chooses the RoPE rows for all of it.
  uint32_t prompt_tokens_ = 0;
};

}  // namespace hexllm

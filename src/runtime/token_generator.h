// Draws an answer token by token. Used by Session. It works on ids: text is
// runtime/conversation.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/decode_steps.h"
#include "runtime/sampler.h"
#include "runtime/sequence.h"

namespace hexllm {

struct GenerateOptions {
  SamplerOptions sampler;
  std::optional<uint32_t> max_new_tokens;  // unset = until something else ends
  std::optional<uint32_t> max_seq_len;     // prompt and answer together, <= C
  bool ignore_end_ids = false;             // end ids are then ordinary tokens
};

// Why an answer ended.
enum class FinishReason : uint8_t {
  kEndToken,  // the model said so
  kMaxNewTokens,
  kMaxSeqLen,
  kContextFull,  // the sequence has C tokens, or its last one cannot be run
  kStopped,      // the callback asked for it
};
// "end_token", "max_new_tokens", "max_seq_len", "context_full", "stopped".
std::string_view FinishReasonName(FinishReason reason);

struct GenerateResult {
  FinishReason reason = FinishReason::kEndToken;
  uint32_t new_tokens = 0;        // given to the callback
  std::optional<int32_t> end_id;  // the end token drawn, when kEndToken
};

enum class TokenAction : uint8_t { kContinue, kStop };
// Called with each new token as it is made, never with the end token. An error
// ends the generation and is returned as it is.
using TokenCallback = std::function<Result<TokenAction>(int32_t id)>;

class TokenGenerator {
 public:
  // Borrows all; they must outlive this. `end_ids` are few.
  TokenGenerator(Sequence* sequence, DecodeSteps* steps, Sampler* sampler,
                 std::span<const int32_t> end_ids);

  // Draws from the sequence's logits (running its pending token, if any, first)
  // until something ends the answer. End ids are checked from the first token
  // on; an end token does not enter the sequence. The last token given stays
  // pending: it is run when something follows. `options` must be valid and the
  // sequence not empty. Errors of the engine, the sampler and the callback.
  // Does not allocate per token.
  Result<GenerateResult> Generate(const GenerateOptions& options,
                                  const TokenCallback& on_token);

 private:
  std::optional<FinishReason> FindLimit(const GenerateOptions& options,
                                        uint32_t new_tokens) const;
  bool IsEnd(int32_t id) const;

  Sequence* sequence_;
  DecodeSteps* steps_;
  Sampler* sampler_;
  std::span<const int32_t> end_ids_;
};

}  // namespace hexllm

// One model ready to run: the runtime's face for cli/, eval/ and compile/.
// It works on token ids; text and conversations are runtime/conversation.h.
// Not thread-safe; sessions of one engine must not run at the same time.
//
// The tokens that were run form one sequence, whose keys and values are in the
// KV cache. Prefill and Generate append to it, Rewind and Reset shorten it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "artifact/artifact.h"
#include "backend/engine.h"
#include "base/status.h"
#include "runtime/sampler.h"
#include "runtime/statistics.h"

namespace hexllm {

struct SessionOptions {
  // T of the prompt's blocks, one of the artifact's; unset = the largest.
  std::optional<uint32_t> prompt_step_tokens;
};

// What Session::Create needs.
struct SessionConfig {
  std::shared_ptr<const artifact::Artifact> artifact;
  Engine* engine = nullptr;  // borrowed; must outlive the session
  SessionOptions options;
};

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
  kContextFull,  // the artifact's context has no room for another token
  kStopped,      // the callback asked for it
};
std::string_view FinishReasonName(FinishReason reason);  // "end_token", ...

struct GenerateResult {
  FinishReason reason = FinishReason::kEndToken;
  uint32_t new_tokens = 0;        // given to the callback
  std::optional<int32_t> end_id;  // the end token drawn, when kEndToken
};

enum class TokenAction : uint8_t { kContinue, kStop };
// Called with each new token as it is made, never with the end token. An error
// ends the generation and is returned as it is.
using TokenCallback = std::function<Result<TokenAction>(int32_t id)>;

// Called for each position in order. The row [V] is valid during the call. An
// error ends the run and is returned as it is.
using LogitsSink =
    std::function<Status(uint32_t position, std::span<const float> logits)>;

class Session {
 public:
  // Loads the artifact's graphs into the engine and allocates all memory that
  // steps need. kBadInput when the graphs do not fit together, kUsage when
  // options ask for a T that the artifact lacks; errors of the engine.
  static Result<std::unique_ptr<Session>> Create(const SessionConfig& config);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const artifact::Artifact& artifact() const;
  // C: the longest sequence.
  uint32_t context_tokens() const;
  // The checkpoint's defaults; temperature 0.8 where it says nothing.
  GenerateOptions DefaultGenerateOptions() const;

  // The sequence: what was run, then a token that was drawn but not yet run.
  std::span<const int32_t> ids() const;

  // Appends `ids` (not empty) and runs them. kUsage for an id outside the
  // vocabulary, and with both numbers when the sequence would exceed the
  // context; the sequence is then unchanged. An error of the device resets it.
  Status Prefill(std::span<const int32_t> ids);

  // Draws tokens until something ends the answer (see FinishReason); end ids
  // are checked for the first token too. The end token does not become part of
  // the sequence. The sequence must not be empty (kUsage). Does not allocate
  // per token once the first one is out, unless the callback does.
  Result<GenerateResult> Generate(const GenerateOptions& options,
                                  const TokenCallback& on_token);

  // Logits of every position of `ids` run from an empty sequence, whatever T
  // the artifact has: blocks when their graph gives all rows, else one token
  // a step. Leaves the session reset. Errors as Prefill's.
  Status Logits(std::span<const int32_t> ids, const LogitsSink& sink);

  // Makes `ids` (not empty) the sequence, keeping the KV columns of the longest
  // common prefix, and runs the rest: at least one token, for its logits.
  // Returns the tokens kept. Errors as Prefill's.
  Result<uint32_t> ReplacePrompt(std::span<const int32_t> ids);

  // Forgets everything: the next Prefill starts at position 0.
  void Reset();

  // Time and tokens of all turns so far. A turn begins with Prefill or
  // ReplacePrompt; Logits is none.
  Statistics statistics() const;

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hexllm

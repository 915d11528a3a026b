// One model ready to run: the runtime's face for cli/, eval/ and compile/.
// It works on token ids; text and conversations are runtime/conversation.h.
// Not thread-safe; sessions of one engine must not run at the same time.
//
// The tokens that were run form one sequence, whose keys and values are in the
// KV cache. Prefill and Generate append to it, Rewind and Reset shorten it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "artifact/artifact.h"
#include "backend/engine.h"
#include "base/status.h"
#include "runtime/decoder_runner.h"
#include "runtime/prompt_processor.h"
#include "runtime/session_file.h"
#include "runtime/statistics.h"
#include "runtime/token_generator.h"

namespace hexllm {

struct SessionOptions {
  // T of the prompt's blocks, one of the artifact's; unset = the largest.
  std::optional<uint32_t> prompt_step_tokens = {};
  // The prompt's blocks run in the lookahead graph, whose logits evaluations
  // look at; `prompt_step_tokens` is then unset (checked).
  bool prompt_in_lookahead_graph = false;
  KvUpdate kv_update = KvUpdate::kSmartMask;
  // kOn needs an artifact with a lookahead graph, kAuto uses it if there is
  // one.
  LookaheadMode lookahead = LookaheadMode::kOff;
  // Sees the taps of a debug compile after each step.
  TapSink on_tap = {};
};

// What Session::Create needs.
struct SessionConfig {
  std::shared_ptr<const artifact::Artifact> artifact;
  Engine* engine = nullptr;  // borrowed; must outlive the session
  SessionOptions options;
};

class Session {
 public:
  // Loads a graph for the prompt's blocks and the one of the smallest T for the
  // rest (the same one when there is no other), and allocates all memory that
  // steps need. kBadInput without a graph that gives logits, kUsage when the
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

  // Appends `ids` and runs them. kUsage when there are none, for an id outside
  // the vocabulary, and with both numbers when the sequence would exceed the
  // context; the sequence is then unchanged. An error of the engine resets it.
  Status Prefill(std::span<const int32_t> ids);

  // Draws tokens until something ends the answer (see FinishReason); end ids
  // are checked for the first token too. The end token does not become part of
  // the sequence; called again, Generate goes on where it stopped. kUsage for
  // options out of range or when nothing was run before. An error of the
  // callback leaves the sequence as it is, any other one resets it. Does not
  // allocate per token, unless the callback does.
  Result<GenerateResult> Generate(const GenerateOptions& options,
                                  const TokenCallback& on_token);

  // Logits of every position of `ids` run from an empty sequence, whatever T
  // the artifact has: blocks when their graph gives all rows, else one token
  // a step. Leaves the session reset. Errors as Prefill's.
  Status Logits(std::span<const int32_t> ids, const LogitsSink& sink);

  // Makes `ids` the sequence, keeping the KV columns of the longest
  // common prefix, and runs the rest: at least one token, for its logits. The
  // statistics say why no more were kept.
  // Returns the tokens kept. Errors as Prefill's.
  Result<uint32_t> ReplacePrompt(std::span<const int32_t> ids);

  // Forgets everything: the next Prefill starts at position 0.
  void Reset();

  // Writes the sequence, with what the caller wants to be kept beside it, to
  // `file` (runtime/session_file.h) and commits it. kUsage when nothing was
  // run.
  Status Save(OutputFile& file, const Json& conversation = {});

  // Makes what another session saved the sequence: one of the same model,
  // whatever its recipe, target, step sizes and KV update. kUnsupported for
  // another model, kUsage for more tokens than there is room for, kBadInput for
  // what cannot be a sequence; the sequence is then as before. Starts no turn.
  Status Restore(const SavedSession& saved);

  // Time and tokens of all turns so far. A turn begins with Prefill or
  // ReplacePrompt; Logits is none.
  Statistics statistics() const;

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hexllm

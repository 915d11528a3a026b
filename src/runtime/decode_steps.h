// Runs the tokens that were drawn: one a step, or with lookahead several. Used
// by the token generator, which draws and knows nothing of it: the logits after
// a token have the same bits whatever step they come from (CPU: decision 0001),
// so text and limits do not depend on this file.
//
// A lookahead step runs the pending token together with a tree of guesses. When
// the next token drawn is one of them, it has been run already: its column is
// committed, its logits are there, and no step is needed. When it is none, the
// rest of the tree is forgotten.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "runtime/decoder_runner.h"
#include "runtime/lookahead.h"
#include "runtime/sequence.h"
#include "runtime/statistics.h"
#include "runtime/step_chooser.h"
#include "runtime/step_graphs.h"

namespace hexllm {

// Runners and what they work on; all borrowed.
struct DecodeConfig {
  Sequence* sequence = nullptr;
  DecoderRunner* single = nullptr;  // has logits of the last row at least
  // The lookahead graph, with logits of all rows, and what it was compiled for.
  // Null with kOff.
  DecoderRunner* wide = nullptr;
  artifact::LookaheadShape shape = {};
  LookaheadMode mode = LookaheadMode::kOff;
};

// Not thread-safe.
class DecodeSteps {
 public:
  explicit DecodeSteps(const DecodeConfig& config);

  // The sequence may have changed since the last call of Run.
  void Begin();
  // Forgets what was learned from texts.
  void Clear();

  // The longest sequence, and whether its pending token can still be run.
  uint32_t MaxTokens() const;
  bool HasRoom() const;

  // Runs the sequence's pending token, if there is one: then the cache has all
  // tokens and the sequence the last one's logits. HasRoom() (checked). Errors
  // are the engine's. Does not allocate.
  Status Run();

  const DecodeCounts& counts() const { return counts_; }

 private:
  using Clock = std::chrono::steady_clock;

  Status RunPlain();
  Status RunWide(StepOption& option);
  bool AcceptPending();
  StepOption ChooseOption();
  void LearnFromBranch();
  void EndStep();

  DecodeConfig config_;
  DecodeCounts counts_;
  std::optional<Lookahead> lookahead_;
  StepChooser chooser_;
  std::vector<StepOption> options_;  // of one step
  // The step that the last logits come from: its tokens may be accepted. `at_`
  // is the one that the sequence ends with.
  std::optional<StepRecord> open_;
  uint32_t at_ = 0;
  std::vector<int32_t> choices_;  // [W]
};

}  // namespace hexllm

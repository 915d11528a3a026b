// The state of one session's text so far: its tokens, the cache that holds
// their keys and values, and the logits of the last one. Plain data shared by
// the prompt processor and the decode steps; Session owns it.
//
// With an attention sink of S and B tokens a full cache drops tokens. Then the
// text is ids[0, S), `evicted`, ids[S, ..): only what is left counts as
// positions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/attention_sink.h"
#include "runtime/kv_manager.h"

namespace hexllm {

struct Sequence {
  explicit Sequence(KvManager cache) : kv(std::move(cache)) {}

  KvManager kv;
  // Null: a full cache ends the text.
  std::unique_ptr<AttentionSink> sink;
  // The tokens run (kv.tokens() of them), then at most one that was drawn but
  // not yet run. Capacity C.
  std::vector<int32_t> ids;
  // What the sink dropped, in order; its length is how far positions of the
  // text are ahead of those in the cache.
  std::vector<int32_t> evicted;
  // [V], of the last token run; empty when it has to be run again. A view of
  // its runner's memory.
  std::span<const float> logits;
};

// Tokens of the text, and those of them that were run.
inline size_t TextTokens(const Sequence& sequence) {
  return sequence.evicted.size() + sequence.ids.size();
}
inline uint32_t RunTokens(const Sequence& sequence) {
  return static_cast<uint32_t>(sequence.evicted.size()) + sequence.kv.tokens();
}

// True when a step of `tokens` tokens that are all kept needs an eviction
// first. Never without a sink.
bool NeedsRoom(const Sequence& sequence, uint32_t tokens);
// Evicts until there is room. Errors of the engine; the cache is then
// undefined.
Status MakeRoom(Sequence& sequence, uint32_t tokens);

// The tokens that a text which begins with `ids` has in common with those run.
size_t CommonTokens(const Sequence& sequence, std::span<const int32_t> ids);

// Keeps the first `tokens` tokens in the cache (<= those run). Their logits are
// gone. Where that is less than the sink's, nothing counts as evicted any more.
void TruncateSequence(Sequence& sequence, uint32_t tokens);

// Lets the last token run again, for its logits.
void UnrunLastToken(Sequence& sequence);

// Forgets everything and zeroes the cache.
void ResetSequence(Sequence& sequence);

}  // namespace hexllm

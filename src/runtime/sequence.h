// The state of one session's text so far: its tokens, the cache that holds
// their keys and values, and the logits of the last one. Plain data shared by
// the prompt processor and the token generator; Session owns it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/kv_manager.h"

namespace hexllm {

struct Sequence {
  explicit Sequence(KvManager cache) : kv(std::move(cache)) {}

  KvManager kv;
  // The tokens run (kv.tokens() of them), then at most one that was drawn but
  // not yet run. Capacity C.
  std::vector<int32_t> ids;
  // [V], of the last token run; empty when it has to be run again. A view of
  // its runner's memory.
  std::span<const float> logits;
};

// Keeps the first `tokens` tokens (<= those run). Their logits are gone.
inline void TruncateSequence(Sequence& sequence, uint32_t tokens) {
  sequence.kv.Rewind(tokens);
  sequence.ids.resize(tokens);
  sequence.logits = {};
}

// Forgets everything and zeroes the cache.
inline void ResetSequence(Sequence& sequence) {
  sequence.kv.Reset();
  sequence.ids.clear();
  sequence.logits = {};
}

}  // namespace hexllm

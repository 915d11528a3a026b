// Which graphs of an artifact make one decoder step, and the KV cache that they
// share. Used by Session::Create. Not a validator: the artifact's reader has
// checked that shards are complete and that graphs agree on the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "artifact/manifest.h"
#include "base/status.h"
#include "runtime/kv_manager.h"

namespace hexllm {

// The graphs of one kind and T: one, or the shards in order of execution.
struct StepGraph {
  GraphKind kind = GraphKind::kKv;
  uint32_t step_tokens = 1;  // T
  LogitsRows logits_rows = LogitsRows::kAll;
  std::vector<size_t> shards;  // indices into manifest.graphs
};

// How answers are decoded.
enum class LookaheadMode : uint8_t {
  kOff,   // one token a step
  kOn,    // lookahead steps wherever the context has room for one
  kAuto,  // what pays (runtime/step_chooser.h)
};

// The prefill, kv and lookahead graphs, by kind and then T.
std::vector<StepGraph> FindStepGraphs(const artifact::Manifest& manifest);

// The graphs that a session loads: one for the prompt's blocks and one for what
// blocks cannot do, which may be the same one; and the lookahead graph.
struct StepChoice {
  StepGraph block;
  StepGraph single;
  std::optional<StepGraph> lookahead;
};

struct StepWish {
  std::optional<uint32_t> block_tokens = {};  // T; unset = the largest
  bool lookahead_blocks = false;  // blocks run in the lookahead graph
  LookaheadMode lookahead = LookaheadMode::kOff;
};

// Of the prefill and kv graphs `single` is the one with the smallest T that
// gives logits (kBadInput when there is none), `block` the one with the T that
// is wished (kUsage when there is none), or with `lookahead_blocks` the
// lookahead graph (kUsage as well). Of equal T, blocks take the prefill
// graph and single steps the kv graph. `lookahead` is there when the artifact
// has it, unless the wish is kOff; kUsage when it has none and the wish is kOn.
Result<StepChoice> ChooseSteps(const std::vector<StepGraph>& steps,
                               const StepWish& wish);

// Sizes of the KV cache that all of `steps` share. kBadInput when a layer of
// the manifest is in none of them.
Result<KvGeometry> FindKvGeometry(const artifact::Manifest& manifest,
                                  const std::vector<StepGraph>& steps);

// Bytes of the buffers that a session needs for these steps and their cache
// with the smart mask, each rounded up to kBufferAlignment.
uint64_t FindBufferBytes(const artifact::Manifest& manifest,
                         const std::vector<StepGraph>& steps,
                         const KvGeometry& geometry);

}  // namespace hexllm

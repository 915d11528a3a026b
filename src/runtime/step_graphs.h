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

// The prefill and kv graphs, by kind and then T.
std::vector<StepGraph> FindStepGraphs(const artifact::Manifest& manifest);

// The graphs that a session loads: one for the prompt's blocks and one for what
// blocks cannot do. They may be the same one.
struct StepChoice {
  StepGraph block;
  StepGraph single;
};

// `single` is the graph with the smallest T that gives logits (kBadInput when
// there is none), `block` the one with T = `block_tokens` (kUsage when there is
// none), or the largest T. Of equal T, blocks take the prefill graph and single
// steps the kv graph.
Result<StepChoice> ChooseSteps(const std::vector<StepGraph>& steps,
                               std::optional<uint32_t> block_tokens);

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

// The two forms of attention on the HTP. Used by htp/lower.
//
// Grouped, as the pass decompose_attention leaves it: the R = H/G query heads
// of a KV head are rows of one matrix, scores [G,R*T,C]. Few nodes.
//
// By heads: each query head has its own products, sum and softmax, scores
// [T,C]. Projections stay whole, so that both forms have the same constants.
//
//   q = linear [T,H*D]     slices [T,1,D], rope of each
//   k = linear [T,G*D]     slices [T,1,D], rope and convert of each,
//                          keys [1,D,C] with a slice of k_in
//   scores, masked, probs  H times [1,T,C]
//   attention              H times [1,T,D], one concat [T,H*D]
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace hexllm::htp {

enum class AttentionForm : uint8_t { kGrouped, kByHeads };

// The form in which `graph`, with grouped attention, is faster on an HTP of
// generation `htp` (79 for v79), by the estimates in docs/htp-backend.md. By
// heads: steps of several tokens, heads that share no KV head, and v75.
AttentionForm FasterForm(const ir::Graph& graph, uint32_t htp);

// `graph`, one of `module` with grouped attention and encodings, by heads. It
// computes the same codes and has the same inputs and outputs.
ir::Graph SplitHeads(const ir::Module& module, const ir::Graph& graph);

}  // namespace hexllm::htp

// What the roles of a graph's inputs and outputs ask of them. Part of the
// verifier (ir/verify.h).
#pragma once

#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::ir {

// Checks directions, uniqueness, indices and names of roles, and each shape
// against base/graph_role.h. The axes T, C and P are the graph's; G and D are
// equal within a layer, R within a rope table. kBadInput naming the role.
// Widths (M, V) are not compared between roles: embeddings of some models are
// narrower than their hidden states.
Status CheckRoles(const Graph& graph);

}  // namespace hexllm::ir

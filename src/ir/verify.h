// The IR specification as code: run after building and after every pass.
#pragma once

#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::ir {

// Checks ids, order, arity, attributes, inferred types, uniqueness of roles and
// names, dead ids, encodings' sizes, and that every graph input/output has the
// shape its role asks for. kBadInput naming graph, node and value: whether that
// is the user's fault (parsed text) or ours (after a pass) is for the caller to
// say.
Status Verify(const Module& module);
Status Verify(const Module& module, const Graph& graph);

}  // namespace hexllm::ir

// The IR specification as code: run after building and after every pass.
#pragma once

#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::ir {

// Checks that
// - graphs have different names of letters, digits and _, and 1 <= T <= C;
// - ids are in range; each value is one of: an input, a constant, the output of
//   the node that it names as its producer; no constant has two values;
// - nodes read only what was made before them; number of inputs, attributes and
//   types are what the op says (ir/ops.h);
// - outputs are outputs of nodes;
// - roles occur once and have the shapes of base/graph_role.h (ir/roles.h);
// - encodings are sound (ir/check_encoding.h); those of constants stand with
//   the constant, not with its value; i32 and block types are for constants:
//   biases and weights of linear;
// - constants have the storage that their type asks for.
// kBadInput naming graph, node and value: whether that is the user's fault
// (parsed text) or ours (after a pass) is for the caller to say. The form that
// takes a graph checks that graph alone, not the module's constants.
Status Verify(const Module& module);
Status Verify(const Module& module, const Graph& graph);

}  // namespace hexllm::ir

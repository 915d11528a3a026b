// What each IR op becomes in a plan. Internal to cpu/lower*.
#pragma once

#include "backend/cpu/lower_graph.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::cpu {

// Appends the instruction of `node` to `lowering`. kUnsupported names the node
// and what about it a plan cannot say.
Status EmitNode(GraphLowering& lowering, const ir::Node& node);

}  // namespace hexllm::cpu

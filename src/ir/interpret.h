// The scalar interpreter: runs any graph slowly and obviously. The oracle for
// passes, kernels and devices. Sums are in double. Not for users: engines run
// artifacts.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace hexllm::ir {

// All rows of `constant`, widened to float; the type keeps the stored dtype.
HostTensor ReadConstant(const Constant& constant);

// Runs `graph` (verified) of `module`. `inputs` stand in the order of
// graph.inputs and have their types (checked); the result has the order of
// graph.outputs. Mask input: 0 = visible, -infinity = hidden (added to the
// scores).
std::vector<HostTensor> Interpret(const Module& module, const Graph& graph,
                                  std::span<const HostTensor> inputs);

}  // namespace hexllm::ir

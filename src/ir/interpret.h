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
// graph.inputs and have their types (checked), numbers on the grid of their
// encoding if they have one; the result has the order of graph.outputs. What a
// node makes is rounded to its encoding; linear and matmul of codes sum exactly
// (ir/ops/encoded_linear.h, ir/ops/matmul.cc). Mask input: 0 = visible,
// -infinity = hidden (added to the scores).
std::vector<HostTensor> Interpret(const Module& module, const Graph& graph,
                                  std::span<const HostTensor> inputs);

}  // namespace hexllm::ir

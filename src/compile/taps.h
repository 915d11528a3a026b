// Outputs for the inner values of graphs: what calibration observes, and what a
// debug compile shows. Used by compile/calibrate and compile/compiler.
#pragma once

#include "ir/graph.h"

namespace hexllm {

// Gives each value of quant::ObservedValues an output tap[name], unless it has
// one: of values of one name the first.
void AddTaps(ir::Graph& graph);

}  // namespace hexllm

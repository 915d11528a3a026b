// Outputs for the inner values of graphs: what calibration observes, and what a
// debug compile shows. Used by compile/tapped_run and compile/compiler.
#pragma once

#include "ir/graph.h"

namespace hexllm {

// Each value of quant::ObservedValues gets an output tap[name], unless its name
// has one: of values of one name the first.
void AddTaps(ir::Graph& graph);

// The same for the inputs of linears. Before AddTaps where both are wanted:
// what moves data keeps its name, and so a linear's input may be an observed
// value in another order.
void AddInputTaps(ir::Graph& graph);

}  // namespace hexllm

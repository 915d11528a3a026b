// Outputs for the inner values of graphs: what calibration observes, and what a
// debug compile shows. Used by compile/tapped_run and compile/compiler.
#pragma once

#include "ir/graph.h"

namespace hexllm {

enum class InputTaps : bool { kNo, kYes };

// Gives each value of quant::ObservedValues an output tap[name], in the order
// of the nodes: of values of one name the first. With kYes the inputs of
// linears as well, which go before: what moves data keeps its name, and so such
// an input may be an observed value in another order.
void AddTaps(ir::Graph& graph, InputTaps inputs = InputTaps::kNo);

}  // namespace hexllm

#include "passes/dead_code.h"

#include "passes/rewrite.h"

namespace hexllm {

Status RemoveDeadCode(ir::Module& module) {
  for (ir::Graph& graph : module.graphs) RemoveDead(graph);
  return OkStatus();
}

}  // namespace hexllm

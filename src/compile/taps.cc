#include "compile/taps.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "quant/assign.h"

namespace hexllm {

void AddTaps(ir::Graph& graph, InputTaps inputs) {
  std::map<std::string, ir::ValueId> chosen;  // the first of each name
  if (inputs == InputTaps::kYes) {
    for (const ir::Node& node : graph.nodes) {
      if (node.op == ir::OpKind::kLinear)
        chosen.emplace(graph[node.inputs[0]].name, node.inputs[0]);
    }
  }
  const std::vector<std::string> observed = quant::ObservedValues(graph);
  const std::set<std::string_view> wanted(observed.begin(), observed.end());
  for (const ir::Node& node : graph.nodes) {
    const std::string& name = graph[node.output].name;
    if (wanted.contains(name)) chosen.emplace(name, node.output);
  }
  for (const ir::Node& node : graph.nodes) {
    const std::string& name = graph[node.output].name;
    const auto found = chosen.find(name);
    if (found == chosen.end() || found->second != node.output) continue;
    graph.AddOutput({.kind = RoleKind::kTap, .index = 0, .name = name},
                    node.output);
  }
}

}  // namespace hexllm

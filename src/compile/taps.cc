#include "compile/taps.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "quant/assign.h"

namespace hexllm {

void AddTaps(ir::Graph& graph) {
  const std::vector<std::string> names = quant::ObservedValues(graph);
  const std::set<std::string_view> wanted(names.begin(), names.end());
  std::set<std::string_view> added;
  std::vector<ir::GraphIo> taps;
  for (const ir::Node& node : graph.nodes) {
    const std::string& name = graph[node.output].name;
    if (wanted.count(name) == 0 || !added.insert(name).second) continue;
    taps.push_back(
        {node.output, {.kind = RoleKind::kTap, .index = 0, .name = name}});
  }
  for (ir::GraphIo& tap : taps) graph.AddOutput(tap.role, tap.value);
}

}  // namespace hexllm

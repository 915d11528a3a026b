#include "compile/taps.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "quant/assign.h"

namespace hexllm {

namespace {

// The names of the taps that there are.
std::set<std::string> TapNames(const ir::Graph& graph) {
  std::set<std::string> names;
  for (const ir::GraphIo& output : graph.outputs)
    if (output.role.kind == RoleKind::kTap) names.insert(output.role.name);
  return names;
}

// Unless its name has one.
void AddTap(ir::Graph& graph, ir::ValueId value,
            std::set<std::string>& tapped) {
  const std::string& name = graph[value].name;
  if (tapped.insert(name).second)
    graph.AddOutput({.kind = RoleKind::kTap, .index = 0, .name = name}, value);
}

}  // namespace

void AddTaps(ir::Graph& graph) {
  const std::vector<std::string> observed = quant::ObservedValues(graph);
  const std::set<std::string_view> wanted(observed.begin(), observed.end());
  std::set<std::string> tapped = TapNames(graph);
  for (const ir::Node& node : graph.nodes)
    if (wanted.contains(graph[node.output].name))
      AddTap(graph, node.output, tapped);
}

void AddInputTaps(ir::Graph& graph) {
  std::set<std::string> tapped = TapNames(graph);
  for (const ir::Node& node : graph.nodes)
    if (node.op == ir::OpKind::kLinear) AddTap(graph, node.inputs[0], tapped);
}

}  // namespace hexllm

#include "passes/rewrite.h"

#include <utility>

namespace hexllm {
namespace {

size_t At(ir::ValueId id) { return static_cast<size_t>(id.index); }

// Values that outputs need, and all inputs.
std::vector<bool> LiveValues(const ir::Graph& graph) {
  std::vector<bool> live(graph.values.size(), false);
  for (const ir::GraphIo& io : graph.inputs) live[At(io.value)] = true;
  for (const ir::GraphIo& io : graph.outputs) live[At(io.value)] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const ir::Node& node = graph.nodes[i];
    if (!live[At(node.output)]) continue;
    for (const ir::ValueId id : node.inputs) live[At(id)] = true;
  }
  return live;
}

bool IsGraphOutput(const ir::Graph& graph, ir::ValueId value) {
  for (const ir::GraphIo& io : graph.outputs) {
    if (io.value == value) return true;
  }
  return false;
}

}  // namespace

const ir::Node* Producer(const ir::Graph& graph, ir::ValueId value) {
  const ir::NodeId producer = graph[value].producer;
  return producer.valid() ? &graph[producer] : nullptr;
}

const ir::Node* ProducerOfKind(const ir::Graph& graph, ir::ValueId value,
                               ir::OpKind kind) {
  const ir::Node* node = Producer(graph, value);
  return node != nullptr && node->op == kind ? node : nullptr;
}

std::vector<int> CountUses(const ir::Graph& graph) {
  std::vector<int> uses(graph.values.size(), 0);
  for (const ir::Node& node : graph.nodes) {
    for (const ir::ValueId id : node.inputs) ++uses[At(id)];
  }
  for (const ir::GraphIo& io : graph.outputs) ++uses[At(io.value)];
  return uses;
}

void ReplaceUses(ir::Graph& graph, ir::ValueId from, ir::ValueId to) {
  for (ir::Node& node : graph.nodes) {
    for (ir::ValueId& id : node.inputs) {
      if (id == from) id = to;
    }
  }
  for (ir::GraphIo& io : graph.outputs) {
    if (io.value == from) io.value = to;
  }
}

bool ForwardValue(ir::Graph& graph, const ir::Node& node, ir::ValueId source) {
  if (graph[node.output].encoding) return false;
  if (IsGraphOutput(graph, node.output) && Producer(graph, source) == nullptr)
    return false;
  ReplaceUses(graph, node.output, source);
  return true;
}

bool IsInner(const ir::Graph& graph, const std::vector<int>& uses,
             ir::ValueId value) {
  return uses[At(value)] == 1 && !graph[value].encoding;
}

void RebuildNodes(ir::Graph& graph, const std::function<void(ir::Node)>& emit) {
  std::vector<ir::Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (ir::Node& node : nodes) emit(std::move(node));
}

void AppendNode(ir::Graph& graph, ir::Node node) {
  graph[node.output].producer = {static_cast<int32_t>(graph.nodes.size())};
  graph.nodes.push_back(std::move(node));
}

std::string WithoutSuffix(const std::string& name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size())
                                : name;
}

void RemoveDead(ir::Graph& graph) {
  const std::vector<bool> live = LiveValues(graph);
  std::vector<ir::ValueId> renumbered(graph.values.size());
  std::vector<ir::Value> values;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!live[i]) continue;
    renumbered[i] = {static_cast<int32_t>(values.size())};
    values.push_back(std::move(graph.values[i]));
  }
  std::vector<ir::Node> nodes;
  for (ir::Node& node : graph.nodes) {
    if (!live[At(node.output)]) continue;
    node.output = renumbered[At(node.output)];
    for (ir::ValueId& id : node.inputs) id = renumbered[At(id)];
    values[At(node.output)].producer = {static_cast<int32_t>(nodes.size())};
    nodes.push_back(std::move(node));
  }
  graph.values = std::move(values);
  graph.nodes = std::move(nodes);
  for (auto* list : {&graph.inputs, &graph.outputs}) {
    for (ir::GraphIo& io : *list) io.value = renumbered[At(io.value)];
  }
}

}  // namespace hexllm

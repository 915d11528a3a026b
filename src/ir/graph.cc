#include "ir/graph.h"

#include <utility>

#include "base/check.h"

namespace hexllm::ir {
namespace {

template <typename T, typename Tag>
auto& At(T& items, Id<Tag> id) {
  HX_CHECK(id.valid() && static_cast<size_t>(id.index) < items.size());
  return items[static_cast<size_t>(id.index)];
}

ValueId AppendValue(Graph& graph, Value value) {
  graph.values.push_back(std::move(value));
  return {static_cast<int32_t>(graph.values.size() - 1)};
}

}  // namespace

const Value& Graph::operator[](ValueId id) const { return At(values, id); }
Value& Graph::operator[](ValueId id) { return At(values, id); }
const Node& Graph::operator[](NodeId id) const { return At(nodes, id); }

ValueId Graph::AddInput(Role role, TensorType type) {
  const ValueId id =
      AppendValue(*this, {.type = std::move(type), .name = RoleToString(role)});
  inputs.push_back({.value = id, .role = std::move(role)});
  return id;
}

ValueId Graph::AddConstant(ConstantId id, const Constant& constant) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].constant == id) return {static_cast<int32_t>(i)};
  }
  return AppendValue(
      *this, {.type = constant.type, .name = constant.name, .constant = id});
}

ValueId Graph::AddNode(OpKind op, std::vector<ValueId> node_inputs, Attrs attrs,
                       std::string value_name) {
  std::vector<const TensorType*> types;
  types.reserve(node_inputs.size());
  for (const ValueId id : node_inputs) types.push_back(&type(id));
  auto inferred = InferType(op, {.inputs = types, .attrs = attrs});
  if (!inferred.ok()) {
    CheckFailed(__FILE__, __LINE__,
                (value_name + ": " + inferred.error().message).c_str());
  }
  const NodeId node = {static_cast<int32_t>(nodes.size())};
  const ValueId output = AppendValue(*this, {.type = *std::move(inferred),
                                             .name = std::move(value_name),
                                             .producer = node});
  nodes.push_back({.op = op,
                   .inputs = std::move(node_inputs),
                   .output = output,
                   .attrs = std::move(attrs)});
  return output;
}

void Graph::AddOutput(Role role, ValueId value) {
  HX_CHECK(value.valid() && static_cast<size_t>(value.index) < values.size());
  outputs.push_back({.value = value, .role = std::move(role)});
}

ValueId Graph::FindIo(const Role& role) const {
  for (const auto* list : {&inputs, &outputs}) {
    for (const GraphIo& io : *list) {
      if (io.role == role) return io.value;
    }
  }
  return {};
}

}  // namespace hexllm::ir

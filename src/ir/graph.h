// The IR: a Module of Graphs in static single assignment form. A graph is
// vectors of values and nodes addressed by typed ids: copying is a copy,
// printing is deterministic, a stale id is a verifier error. Made by models/,
// rewritten by passes/, executed by ir/interpret.h, lowered by backend/. Not on
// the device.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/graph_role.h"
#include "ir/constant.h"
#include "ir/ops.h"
#include "ir/types.h"

namespace hexllm::ir {

// One SSA value: a graph input, a constant, or the output of one node.
struct Value {
  TensorType type;
  // Where it comes from in the model ("model.layers.3.mlp.down_proj"): survives
  // the passes, so that one layer's value can be matched between stages. Not
  // unique.
  std::string name;
  NodeId producer = {};      // valid for node outputs
  ConstantId constant = {};  // valid for constants; neither = graph input
  std::optional<Encoding> encoding = {};
};

struct Node {
  OpKind op;
  std::vector<ValueId> inputs;
  ValueId output;
  Attrs attrs;
};

struct GraphIo {
  ValueId value;
  Role role;
};

// A function of one step. Nodes stand in execution order: each uses only values
// made before it.
class Graph {
 public:
  std::string name;  // unique in the module: "prefill_128", "kv"
  GraphKind kind = GraphKind::kKv;
  int64_t step_tokens = 1;     // T
  int64_t context_tokens = 1;  // C
  // Place in the order of execution among the graphs of its kind and T, which
  // make one step.
  uint32_t shard = 0;
  std::vector<GraphIo> inputs;
  std::vector<GraphIo> outputs;
  std::vector<Value> values;
  std::vector<Node> nodes;

  const Value& operator[](ValueId id) const;
  Value& operator[](ValueId id);
  const Node& operator[](NodeId id) const;
  const TensorType& type(ValueId id) const { return (*this)[id].type; }

  ValueId AddInput(Role role, TensorType type);
  // The value of constant `id`; added on first use, the same ValueId
  // afterwards.
  ValueId AddConstant(ConstantId id, const Constant& constant);
  // Appends a node; its output type is inferred. An op or type mismatch is a
  // bug of the caller (checked).
  ValueId AddNode(OpKind op, std::vector<ValueId> node_inputs, Attrs attrs,
                  std::string value_name);
  void AddOutput(Role role, ValueId value);
  // The value of the input or output with this role, or an invalid id.
  ValueId FindIo(const Role& role) const;
};

// Graphs that share constants.
struct Module {
  ConstantStore constants;
  std::vector<Graph> graphs;
};

}  // namespace hexllm::ir

#include "ir/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "base/dequantize.h"
#include "base/quote.h"
#include "ir/axes.h"
#include "ir/check_encoding.h"
#include "ir/roles.h"

namespace hexllm::ir {
namespace {

Error Bad(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

bool InRange(int32_t index, size_t size) {
  return index >= 0 && static_cast<size_t>(index) < size;
}

// A row is what DequantizeRow takes: whole blocks. Also keeps the sums of
// RowBytes from overflowing.
Status CheckStorage(const Constant& constant) {
  const TensorType& type = constant.type;
  if (!IsFloatLike(type.dtype)) {
    return Bad(fmt::format("expected a float-like type, found {}",
                           TypeToString(type)));
  }
  const auto total = StorageBytes(type.dtype, type.shape);
  if (!total) return Bad(fmt::format("bad shape {}", TypeToString(type)));
  if (*total == 0)
    return Bad(fmt::format("empty shape {}", TypeToString(type)));
  const auto row_bytes = StorageBytes(type.dtype, {RowElems(constant)});
  if (!row_bytes) {
    return Bad(fmt::format("expected rows of whole blocks, found {}",
                           TypeToString(type)));
  }
  if (constant.rows.empty()) {
    if (constant.bytes.size() == *total) return OkStatus();
    return Bad(fmt::format("expected {} bytes for {}, found {}", *total,
                           TypeToString(type), constant.bytes.size()));
  }
  const auto rows = static_cast<size_t>(NumRows(constant));
  if (constant.rows.size() != rows) {
    return Bad(fmt::format("expected {} row numbers, found {}", rows,
                           constant.rows.size()));
  }
  if (constant.bytes.size() % *row_bytes != 0) {
    return Bad(fmt::format("expected whole rows of {} bytes, found {} bytes",
                           *row_bytes, constant.bytes.size()));
  }
  const auto stored = static_cast<int64_t>(constant.bytes.size() / *row_bytes);
  for (const int64_t row : constant.rows) {
    if (row < 0 || row >= stored)
      return Bad(fmt::format("row {} is not among the {} stored", row, stored));
  }
  return OkStatus();
}

Status CheckConstant(const Constant& constant) {
  HX_RETURN_IF_ERROR(CheckStorage(constant));
  if (!constant.encoding) return OkStatus();
  HX_RETURN_IF_ERROR(CheckEncoding(*constant.encoding, constant.type));
  const int64_t elements = NumRows(constant) * RowElems(constant);
  if (constant.codes.empty() || std::ssize(constant.codes) == elements)
    return OkStatus();
  return Bad(fmt::format("expected {} chosen codes, found {}", elements,
                         constant.codes.size()));
}

// What an encoded constant may be used for: codes of 32 bits are those of
// biases, block types those of weights.
bool MayRead(const Node& node, size_t input, const Encoding& encoding) {
  const bool linear = node.op == OpKind::kLinear;
  const bool linear_add = node.op == OpKind::kLinearAdd;
  if (IsBlockType(encoding.dtype)) return (linear || linear_add) && input == 1;
  if (encoding.dtype != DType::kI32) return true;
  return (linear && input == 2) || (linear_add && input == 3);
}

bool IsGraphName(std::string_view name) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), is_good);
}

// Checks one graph, front to back: a value is known once its input, constant or
// node has been seen.
class GraphVerifier {
 public:
  GraphVerifier(const Module& module, const Graph& graph)
      : module_(module), graph_(graph), made_(graph.values.size(), false) {}

  Status Run() {
    HX_RETURN_IF_ERROR(CheckHeader());
    HX_RETURN_IF_ERROR(CheckInputs());
    HX_RETURN_IF_ERROR(CheckConstants());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      Status status = CheckNode(i);
      if (!status.ok()) return std::move(status).error().With(NodeText(i));
    }
    HX_RETURN_IF_ERROR(CheckValues());
    HX_RETURN_IF_ERROR(CheckOutputs());
    return CheckRoles(graph_);
  }

 private:
  std::string NodeText(size_t index) const {
    const Node& node = graph_.nodes[index];
    std::string text = fmt::format("node {}", index);
    if (IsValue(node.output)) text += " " + Quoted(graph_[node.output].name);
    return text;
  }

  bool IsValue(ValueId id) const {
    return InRange(id.index, graph_.values.size());
  }
  bool IsMade(ValueId id) const { return made_[static_cast<size_t>(id.index)]; }
  void SetMade(ValueId id) { made_[static_cast<size_t>(id.index)] = true; }

  Status CheckHeader() const {
    if (!IsGraphName(graph_.name))
      return Bad("expected a name of letters, digits and _");
    if (graph_.step_tokens < 1 || graph_.context_tokens < graph_.step_tokens) {
      return Bad(fmt::format("expected 1 <= T <= C, found T={} C={}",
                             graph_.step_tokens, graph_.context_tokens));
    }
    return OkStatus();
  }

  Status CheckInputs() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const ValueId id = graph_.inputs[i].value;
      if (!IsValue(id))
        return Bad(fmt::format("input {}: no value {}", i, id.index));
      const Value& value = graph_[id];
      if (value.producer.valid() || value.constant.valid()) {
        return Bad(fmt::format(
            "input {}: value {} is a node output or a constant", i, id.index));
      }
      if (IsMade(id))
        return Bad(
            fmt::format("input {}: value {} is an input twice", i, id.index));
      SetMade(id);
    }
    return OkStatus();
  }

  Status CheckConstants() {
    std::set<ConstantId> seen;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      if (!value.constant.valid()) continue;
      if (!InRange(value.constant.index, module_.constants.size())) {
        return Bad(
            fmt::format("value {}: no constant {}", i, value.constant.index));
      }
      if (value.producer.valid())
        return Bad(fmt::format("value {}: a constant with a producer", i));
      if (!seen.insert(value.constant).second) {
        return Bad(fmt::format("value {}: constant {} has two values", i,
                               value.constant.index));
      }
      const TensorType& type = module_.constants[value.constant].type;
      if (type != value.type) {
        return Bad(
            fmt::format("value {}: expected its constant's type {}, found {}",
                        i, TypeToString(type), TypeToString(value.type)));
      }
      made_[i] = true;
    }
    return OkStatus();
  }

  Status CheckNode(size_t index) {
    const Node& node = graph_.nodes[index];
    if (static_cast<size_t>(node.op) >= AllOps().size())
      return Bad("no such op");
    if (!IsValue(node.output))
      return Bad(fmt::format("output: no value {}", node.output.index));
    std::vector<const TensorType*> types;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (!IsValue(id))
        return Bad(fmt::format("input {}: no value {}", i, id.index));
      if (!IsMade(id))
        return Bad(fmt::format("input {}: value {} is used before it is made",
                               i, id.index));
      types.push_back(&graph_.type(id));
      HX_RETURN_IF_ERROR(CheckUse(node, i));
    }
    const Value& output = graph_[node.output];
    if (IsMade(node.output) ||
        output.producer.index != static_cast<int32_t>(index)) {
      return Bad(fmt::format("output: value {} has another producer",
                             node.output.index));
    }
    HX_ASSIGN_OR_RETURN(
        const TensorType type,
        InferType(node.op, {.inputs = types, .attrs = node.attrs}));
    if (type != output.type) {
      return Bad(fmt::format("output: expected {}, found {}",
                             TypeToString(type), TypeToString(output.type)));
    }
    SetMade(node.output);
    return OkStatus();
  }

  Status CheckUse(const Node& node, size_t input) const {
    const ConstantId id = graph_[node.inputs[input]].constant;
    if (!id.valid()) return OkStatus();
    const auto& encoding = module_.constants[id].encoding;
    if (!encoding || MayRead(node, input, *encoding)) return OkStatus();
    return Bad(fmt::format("input {}: not for a constant encoded as {}", input,
                           DTypeName(encoding->dtype)));
  }

  Status CheckValues() const {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      if (!made_[i])
        return Bad(fmt::format(
            "value {}: dead id, neither input, constant nor output of a node",
            i));
      if (!value.encoding) continue;
      Status status = CheckValueEncoding(value);
      if (!status.ok())
        return std::move(status).error().With(fmt::format("value {}", i));
    }
    return OkStatus();
  }

  Status CheckValueEncoding(const Value& value) const {
    if (value.constant.valid())
      return Bad("encoding: a constant's stands with the constant");
    if (value.type.dtype != DType::kF32) {
      return Bad("encoding: expected a value of f32, found " +
                 TypeToString(value.type));
    }
    const Encoding& encoding = *value.encoding;
    if (IsBlockType(encoding.dtype) || encoding.dtype == DType::kI32) {
      return Bad(fmt::format("encoding: {} is for constants",
                             DTypeName(encoding.dtype)));
    }
    return CheckEncoding(encoding, value.type);
  }

  Status CheckOutputs() const {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId id = graph_.outputs[i].value;
      if (!IsValue(id))
        return Bad(fmt::format("output {}: no value {}", i, id.index));
      if (!graph_[id].producer.valid()) {
        return Bad(fmt::format("output {}: value {} is no node's output", i,
                               id.index));
      }
    }
    return OkStatus();
  }

  const Module& module_;
  const Graph& graph_;
  std::vector<bool> made_;
};

// Element counts that fit come first: everything after relies on them.
Status CheckTypes(const Graph& graph) {
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const TensorType& type = graph.values[i].type;
    if (!StorageBytes(type.dtype, type.shape))
      return Bad(fmt::format("value {}: bad shape {}", i, TypeToString(type)));
  }
  return OkStatus();
}

}  // namespace

Status Verify(const Module& module) {
  for (size_t i = 0; i < module.constants.size(); ++i) {
    const Constant& constant = module.constants[{static_cast<int32_t>(i)}];
    Status status = CheckConstant(constant);
    if (!status.ok())
      return std::move(status).error().With(
          fmt::format("constant {} {}", i, Quoted(constant.name)));
  }
  std::set<std::string_view> names;
  for (const Graph& graph : module.graphs) {
    if (!names.insert(graph.name).second)
      return Bad("graph " + Quoted(graph.name) + ": the name occurs twice");
    HX_RETURN_IF_ERROR(Verify(module, graph));
  }
  return OkStatus();
}

Status Verify(const Module& module, const Graph& graph) {
  Status status = CheckTypes(graph);
  if (status.ok()) status = GraphVerifier(module, graph).Run();
  if (!status.ok())
    return std::move(status).error().With("graph " + Quoted(graph.name));
  return OkStatus();
}

}  // namespace hexllm::ir

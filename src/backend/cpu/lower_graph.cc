#include "backend/cpu/lower_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backend/cpu/lower_memory.h"
#include "backend/cpu/lower_ops.h"
#include "base/bytes.h"
#include "base/check.h"

namespace hexllm::cpu {
namespace {

using ir::Node;
using ir::OpKind;
using ir::ValueId;

constexpr size_t kNever = std::numeric_limits<size_t>::max();

size_t Index(ValueId id) {
  HX_CHECK(id.valid());
  return static_cast<size_t>(id.index);
}

int64_t Elements(const Shape& shape) {
  const auto elements = NumElements(shape);
  HX_CHECK(elements.has_value());
  return *elements;
}

// True when the axes longer than 1 keep their order.
bool MovesUnitAxesOnly(const Shape& shape, const std::vector<int64_t>& perm) {
  int64_t last = -1;
  for (const int64_t axis : perm) {
    if (shape[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool IsStepRole(RoleKind kind) {
  return kind != RoleKind::kKIn && kind != RoleKind::kVIn;
}

std::string TypeText(const ir::TensorType& type) {
  return std::string(DTypeName(type.dtype)) + ShapeToString(type.shape);
}

}  // namespace

bool IsAlias(const ir::Graph& graph, const Node& node) {
  const Shape& shape = graph.type(node.inputs[0]).shape;
  switch (node.op) {
    case OpKind::kReshape:
      return true;
    case OpKind::kTranspose:
      return MovesUnitAxesOnly(shape,
                               IntsAttr(node.attrs, ir::AttrName::kPerm));
    case OpKind::kSliceRows:
      return IntAttr(node.attrs, ir::AttrName::kCount) == shape[0];
    default:
      return false;
  }
}

GraphLowering::GraphLowering(const ir::Graph& graph, WeightTable& weights)
    : graph_(graph), weights_(weights) {
  lowered_.plan.step_tokens = graph.step_tokens;
  lowered_.plan.context_tokens = graph.context_tokens;
}

Result<LoweredGraph> GraphLowering::Run() {
  HX_RETURN_IF_ERROR(CheckEncodings());
  FindRoots();
  PlaceInputs();
  ReserveOutputs();
  for (const Node& node : graph_.nodes) {
    if (IsAlias(graph_, node)) continue;
    HX_RETURN_IF_ERROR(EmitNode(*this, node));
  }
  HX_RETURN_IF_ERROR(CopyOutputs());
  PlaceBuffers();
  return std::move(lowered_);
}

// --- Values ---

GraphLowering::ValueState& GraphLowering::Root(ValueId id) {
  return values_[Index(values_[Index(id)].root)];
}

const GraphLowering::ValueState& GraphLowering::Root(ValueId id) const {
  return values_[Index(values_[Index(id)].root)];
}

Status GraphLowering::CheckEncodings() const {
  for (const ir::Value& value : graph_.values) {
    if (!value.encoding.has_value()) continue;
    return Error{ErrorCode::kUnsupported,
                 fmt::format("graph '{}': value '{}' has an encoding; the CPU "
                             "runs float graphs only",
                             graph_.name, value.name)};
  }
  return OkStatus();
}

void GraphLowering::FindRoots() {
  values_.resize(graph_.values.size());
  output_of_.assign(graph_.values.size(), -1);
  for (size_t i = 0; i < values_.size(); ++i) {
    values_[i].root = {static_cast<int32_t>(i)};
  }
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    for (const ValueId input : node.inputs) {
      Root(input).last_use = std::max(Root(input).last_use, i);
    }
    if (IsAlias(graph_, node)) {
      values_[Index(node.output)].root = values_[Index(node.inputs[0])].root;
    }
  }
  for (const ir::GraphIo& io : graph_.outputs) Root(io.value).last_use = kNever;
}

void GraphLowering::PlaceInputs() {
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    const ir::GraphIo& input = graph_.inputs[i];
    ValueState& state = Root(input.value);
    state.operand = {.kind = OperandKind::kInput, .index = i};
    const bool steps = IsStepRole(input.role.kind);
    state.rows = steps ? RowRange{.first = 0, .count = graph_.step_tokens}
                       : Unordered(shape(input.value)[0]);
  }
}

// Lets instructions write to the graph outputs directly. An output whose value
// is a graph input, or goes to a second output, is copied at the end.
void GraphLowering::ReserveOutputs() {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const ValueId root = values_[Index(graph_.outputs[i].value)].root;
    if (!graph_[root].producer.valid() || output_of_[Index(root)] >= 0)
      continue;
    output_of_[Index(root)] = static_cast<int32_t>(i);
  }
}

Result<Operand> GraphLowering::Activation(const Node& node, size_t i,
                                          DType dtype) {
  const ValueId id = node.inputs[i];
  if (graph_[Root(id).root].constant.valid()) {
    return Unsupported(
        node,
        fmt::format("input {} is a constant; expected a computed value", i));
  }
  const ValueState& root = Root(id);
  if (graph_.type(id).dtype != dtype ||
      (dtype == DType::kI32 && root.operand.kind != OperandKind::kInput)) {
    return Unsupported(
        node, fmt::format("input {}: expected {}", i,
                          dtype == DType::kI32 ? "an i32 graph input" : "f32"));
  }
  return root.operand;
}

Result<Operand> GraphLowering::Weight(const Node& node, size_t i,
                                      WeightForm form) {
  const ir::Value& value = graph_[node.inputs[i]];
  if (!value.constant.valid()) {
    return Unsupported(
        node,
        fmt::format("input {} is a computed value; expected a constant", i));
  }
  const size_t row = weights_.Use(value.constant, form);
  std::vector<size_t>& rows = lowered_.weight_rows;
  const auto found = std::find(rows.begin(), rows.end(), row);
  const auto index = static_cast<uint64_t>(found - rows.begin());
  if (found == rows.end()) rows.push_back(row);
  return Operand{.kind = OperandKind::kWeight, .index = index};
}

RowRange GraphLowering::AxisRows(ValueId id) const {
  const RowRange rows = Root(id).rows;
  const int64_t axis = shape(id)[0];
  return rows.count == axis ? rows : Unordered(axis);
}

RowRange GraphLowering::MemoryRows(ValueId id) const { return Root(id).rows; }

// --- Memory ---

// The input (an index into node.inputs) whose buffer the output can take over,
// or kNever.
size_t GraphLowering::FindInPlace(const Node& node,
                                  std::span<const size_t> candidates,
                                  uint64_t bytes) const {
  const auto node_index = static_cast<size_t>(&node - graph_.nodes.data());
  for (const size_t candidate : candidates) {
    if (candidate >= node.inputs.size()) continue;
    const ValueState& root = Root(node.inputs[candidate]);
    if (root.operand.kind != OperandKind::kArena) continue;
    if (root.last_use != node_index) continue;
    if (buffers_[root.operand.index].bytes != bytes) continue;
    bool read_out_of_order = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool in_order = std::find(candidates.begin(), candidates.end(),
                                      i) != candidates.end();
      if (!in_order && Root(node.inputs[i]).root == root.root) {
        read_out_of_order = true;
      }
    }
    if (!read_out_of_order) return candidate;
  }
  return kNever;
}

Operand GraphLowering::Output(const Node& node, RowRange rows,
                              std::initializer_list<size_t> in_place) {
  const auto bytes = StorageBytes(DType::kF32, shape(node.output));
  HX_CHECK(bytes.has_value());
  const size_t reused = FindInPlace(node, in_place, *bytes);
  ValueState& state = Root(node.output);
  state.rows = rows;
  if (reused == kNever) {
    buffers_.push_back({.bytes = *bytes, .place = {}});
    state.operand = {.kind = OperandKind::kArena, .index = buffers_.size() - 1};
  } else {
    state.operand = Root(node.inputs[reused]).operand;
  }
  const int32_t output = output_of_[Index(node.output)];
  if (output >= 0) {
    buffers_[state.operand.index].place = {
        .kind = OperandKind::kOutput, .index = static_cast<uint64_t>(output)};
  }
  return state.operand;
}

void GraphLowering::Emit(const Node& node, Instruction instruction) {
  instruction.name = graph_[node.output].name;
  lowered_.plan.code.push_back(std::move(instruction));
}

Status GraphLowering::CopyOutputs() {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const ir::GraphIo& output = graph_.outputs[i];
    const ValueId root = values_[Index(output.value)].root;
    if (output_of_[Index(root)] == static_cast<int32_t>(i)) continue;
    if (graph_[root].constant.valid() ||
        graph_.type(root).dtype != DType::kF32) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("graph '{}': output {} is a constant or not f32",
                               graph_.name, RoleToString(output.role))};
    }
    const RowRange rows = Root(root).rows;
    lowered_.plan.code.push_back(
        {.op = PlanOp::kCopyRows,
         .in = {Root(root).operand},
         .out = {.kind = OperandKind::kOutput, .index = i},
         .rows = rows,
         .ints = {0, Elements(shape(root)) / rows.count},
         .name = RoleToString(output.role)});
  }
  return OkStatus();
}

// Gives the buffers that are no graph output their place in the arena, and the
// instructions their final operands.
void GraphLowering::PlaceBuffers() {
  std::vector<BufferLife> lives(buffers_.size());
  std::vector<bool> used(buffers_.size(), false);
  const auto touch = [&](const Operand& operand, size_t at) {
    if (operand.kind != OperandKind::kArena) return;
    BufferLife& life = lives[operand.index];
    if (!used[operand.index]) life.first = static_cast<int64_t>(at);
    used[operand.index] = true;
    life.last = static_cast<int64_t>(at);
  };
  for (size_t i = 0; i < lowered_.plan.code.size(); ++i) {
    for (const Operand& in : lowered_.plan.code[i].in) touch(in, i);
    touch(lowered_.plan.code[i].out, i);
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const bool scratch = buffers_[i].place.kind != OperandKind::kOutput;
    lives[i].bytes = scratch ? buffers_[i].bytes : 0;
  }
  const ArenaLayout layout = PlanArena(lives, kArenaAlignment);
  const auto place = [&](Operand& operand) {
    if (operand.kind != OperandKind::kArena) return;
    const Buffer& buffer = buffers_[operand.index];
    operand = buffer.place.kind == OperandKind::kOutput
                  ? buffer.place
                  : Operand{.kind = OperandKind::kArena,
                            .index = layout.offsets[operand.index]};
  };
  for (Instruction& instruction : lowered_.plan.code) {
    for (Operand& in : instruction.in) place(in);
    place(instruction.out);
  }
  lowered_.plan.arena_bytes = layout.bytes;
}

Error GraphLowering::Unsupported(const Node& node,
                                 std::string_view reason) const {
  std::string inputs;
  for (const ValueId input : node.inputs) {
    if (!inputs.empty()) inputs += ", ";
    inputs += TypeText(graph_.type(input));
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("graph '{}': '{}' = {}({}) -> {}: {}", graph_.name,
                           graph_[node.output].name, GetOpInfo(node.op).name,
                           inputs, TypeText(graph_.type(node.output)), reason)};
}

}  // namespace hexllm::cpu

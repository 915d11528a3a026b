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

bool IsStepRole(RoleKind kind) {
  return kind != RoleKind::kKIn && kind != RoleKind::kVIn;
}

std::string TypeText(const ir::TensorType& type) {
  return std::string(DTypeName(type.dtype)) + ShapeToString(type.shape);
}

}  // namespace

GraphLowering::GraphLowering(const ir::Graph& graph, WeightTable& weights)
    : graph_(graph), weights_(weights), all_rows_(NeedsAllRows(graph)) {
  lowered_.plan.step_tokens = graph.step_tokens;
  lowered_.plan.context_tokens = graph.context_tokens;
}

Result<LoweredGraph> GraphLowering::Run() {
  HX_RETURN_IF_ERROR(CheckValueEncodings(graph_));
  FindRoots();
  FindLastUses();
  PlaceInputs();
  ReserveOutputs();
  for (const Node& node : graph_.nodes) {
    if (IsAlias(graph_, node)) continue;
    HX_RETURN_IF_ERROR(RunNode(node));
  }
  HX_RETURN_IF_ERROR(CopyOutputs());
  PlaceBuffers();
  return std::move(lowered_);
}

// What has an encoding is encoded as soon as it is made, so that its memory can
// be used again.
Status GraphLowering::RunNode(const Node& node) {
  if (KeepsMemory(graph_, node)) {
    HX_ASSIGN_OR_RETURN(const Operand from, Activation(node, 0));
    const RowRange rows = MemoryRows(node.inputs[0]);
    Output(node, rows, {0});
    HX_RETURN_IF_ERROR(Round(node, from));
  } else {
    HX_RETURN_IF_ERROR(EmitNode(*this, node));
    if (NeedsRounding(graph_, node))
      HX_RETURN_IF_ERROR(Round(node, Root(node.output).operand));
  }
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const ValueId output = graph_.outputs[i].value;
    if (Root(output).root == node.output && EncodingOf(output)) EncodeOutput(i);
  }
  return OkStatus();
}

// --- Values ---

GraphLowering::ValueState& GraphLowering::Root(ValueId id) {
  return values_[Index(values_[Index(id)].root)];
}

const GraphLowering::ValueState& GraphLowering::Root(ValueId id) const {
  return values_[Index(values_[Index(id)].root)];
}

void GraphLowering::FindRoots() {
  values_.resize(graph_.values.size());
  output_of_.assign(graph_.values.size(), -1);
  for (size_t i = 0; i < values_.size(); ++i) {
    values_[i].root = {static_cast<int32_t>(i)};
  }
  for (const Node& node : graph_.nodes) {
    if (!IsAlias(graph_, node)) continue;
    values_[Index(node.output)].root = values_[Index(node.inputs[0])].root;
  }
}

void GraphLowering::FindLastUses() {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    for (const ValueId input : graph_.nodes[i].inputs) {
      Root(input).last_use = std::max(Root(input).last_use, i);
    }
  }
  for (const ir::GraphIo& io : graph_.outputs) {
    // What is encoded is a copy, made at once of all but graph inputs.
    const bool copied = EncodingOf(io.value).has_value() &&
                        graph_[Root(io.value).root].producer.valid();
    if (!copied) Root(io.value).last_use = kNever;
  }
}

void GraphLowering::PlaceInputs() {
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    const ir::GraphIo& input = graph_.inputs[i];
    ValueState& state = Root(input.value);
    state.operand = {.kind = OperandKind::kInput, .index = i};
    const Shape& type = shape(input.value);
    const int64_t rows = type.empty() ? 1 : type[0];
    const bool steps =
        IsStepRole(input.role.kind) && rows == graph_.step_tokens;
    state.rows = steps ? StepRows() : Unordered(rows);
  }
}

// Lets instructions write to the graph outputs directly. An output whose value
// is a graph input, or goes to a second output, is copied at the end; one with
// an encoding is no f32.
void GraphLowering::ReserveOutputs() {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const ValueId root = values_[Index(graph_.outputs[i].value)].root;
    if (!graph_[root].producer.valid() || output_of_[Index(root)] >= 0 ||
        EncodingOf(root)) {
      continue;
    }
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
  DecodeInput(Root(id).root);
  const ValueState& root = Root(id);
  if (graph_.type(id).dtype != dtype ||
      (dtype == DType::kI32 && root.operand.kind != OperandKind::kInput)) {
    return Unsupported(
        node, fmt::format("input {}: expected {}", i,
                          dtype == DType::kI32 ? "an i32 graph input" : "f32"));
  }
  return root.operand;
}

Result<ir::ConstantId> GraphLowering::ConstantOf(const Node& node,
                                                 size_t i) const {
  const ir::Value& value = graph_[node.inputs[i]];
  if (value.constant.valid()) return value.constant;
  return Unsupported(
      node,
      fmt::format("input {} is a computed value; expected a constant", i));
}

Result<Operand> GraphLowering::Weight(const Node& node, size_t i,
                                      WeightForm form) {
  HX_ASSIGN_OR_RETURN(const ir::ConstantId id, ConstantOf(node, i));
  return Weight({.id = id, .form = form});
}

// The operand of a row of the weight table.
Operand GraphLowering::WeightRow(size_t row) {
  std::vector<size_t>& rows = lowered_.weight_rows;
  const auto found = std::find(rows.begin(), rows.end(), row);
  const auto index = static_cast<uint64_t>(found - rows.begin());
  if (found == rows.end()) rows.push_back(row);
  return Operand{.kind = OperandKind::kWeight, .index = index};
}

Result<Operand> GraphLowering::Prepare(const Node& node, size_t i,
                                       RowRange rows, const Preparation& what) {
  HX_ASSIGN_OR_RETURN(const Operand x, Activation(node, i));
  const ValueId root = Root(node.inputs[i]).root;
  for (const Prepared& prepared : prepared_) {
    if (prepared.root == root && prepared.rows == rows &&
        prepared.what == what) {
      return prepared.made;
    }
  }
  const Operand made = NewBuffer(static_cast<uint64_t>(what.bytes));
  lowered_.plan.code.push_back({.op = what.op,
                                .in = {x},
                                .out = made,
                                .rows = rows,
                                .ints = what.ints,
                                .floats = what.floats,
                                .name = graph_[node.inputs[i]].name});
  prepared_.push_back({.root = root, .rows = rows, .what = what, .made = made});
  return made;
}

RowRange GraphLowering::AxisRows(ValueId id) const {
  const RowRange rows = Root(id).rows;
  const int64_t axis = shape(id)[0];
  return rows.count == axis ? rows : Unordered(axis);
}

RowRange GraphLowering::MemoryRows(ValueId id) const { return Root(id).rows; }

// Elements of a row of a root's memory.
int64_t GraphLowering::MemoryWidth(ValueId root) const {
  return Elements(shape(root)) / Root(root).rows.count;
}

// --- Encodings ---

// Turns the codes of a graph input into numbers when they are first asked for.
// An input without elements is left alone.
void GraphLowering::DecodeInput(ValueId root) {
  ValueState& state = Root(root);
  const auto& encoding = EncodingOf(root);
  if (state.operand.kind != OperandKind::kInput || !encoding ||
      Elements(shape(root)) == 0) {
    return;
  }
  const Operand codes = state.operand;
  state.operand = NewBuffer(*StorageBytes(DType::kF32, shape(root)));
  Instruction decode =
      CodecInstruction(PlanOp::kDecode, *encoding, MemoryWidth(root));
  decode.in = {codes};
  decode.out = state.operand;
  decode.rows = state.rows;
  decode.name = graph_[root].name;
  lowered_.plan.code.push_back(std::move(decode));
}

// Rounds `from` to the encoding of the node's output, whose memory is known.
Status GraphLowering::Round(const Node& node, Operand from) {
  const ValueState& state = Root(node.output);
  const ir::Encoding& to = *EncodingOf(node.output);
  const int64_t width = MemoryWidth(node.output);
  Instruction round = RoundInstruction(to, width);
  if (node.op == OpKind::kConvert) {
    const auto& x = EncodingOf(node.inputs[0]);
    auto made = ConvertInstruction(x ? &*x : nullptr, to, node.attrs, width);
    if (!made.ok()) return Unsupported(node, made.error().message);
    round = *std::move(made);
  }
  round.in = {from};
  round.out = state.operand;
  round.rows = state.rows;
  Emit(node, std::move(round));
  return OkStatus();
}

void GraphLowering::EncodeOutput(size_t i) {
  const ir::GraphIo& output = graph_.outputs[i];
  const ValueId root = Root(output.value).root;
  Instruction encode = CodecInstruction(
      PlanOp::kEncode, *EncodingOf(output.value), MemoryWidth(root));
  encode.in = {Root(root).operand};
  encode.out = {.kind = OperandKind::kOutput, .index = i};
  encode.rows = Root(root).rows;
  encode.name = RoleToString(output.role);
  lowered_.plan.code.push_back(std::move(encode));
}

// --- Memory ---

Operand GraphLowering::NewBuffer(uint64_t bytes) {
  buffers_.push_back({.bytes = bytes, .place = {}});
  return {.kind = OperandKind::kArena, .index = buffers_.size() - 1};
}

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
    state.operand = NewBuffer(*bytes);
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

// Copies a value that has no encoding to graph output `i`.
Status GraphLowering::CopyOutput(size_t i) {
  const ir::GraphIo& output = graph_.outputs[i];
  const ValueId root = Root(output.value).root;
  if (graph_[root].constant.valid() || graph_.type(root).dtype != DType::kF32) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("graph '{}': output {} is a constant or not f32",
                             graph_.name, RoleToString(output.role))};
  }
  lowered_.plan.code.push_back(
      {.op = PlanOp::kCopyRows,
       .in = {Root(root).operand},
       .out = {.kind = OperandKind::kOutput, .index = i},
       .rows = Root(root).rows,
       .ints = {0, MemoryWidth(root)},
       .name = RoleToString(output.role)});
  return OkStatus();
}

// Writes the outputs that no instruction has written.
Status GraphLowering::CopyOutputs() {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const ir::GraphIo& output = graph_.outputs[i];
    const ValueId root = Root(output.value).root;
    if (output_of_[Index(root)] == static_cast<int32_t>(i)) continue;
    if (!EncodingOf(output.value)) {
      HX_RETURN_IF_ERROR(CopyOutput(i));
    } else if (!graph_[root].producer.valid()) {
      DecodeInput(root);
      EncodeOutput(i);
    }
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

#include "backend/cpu/engine_checker.h"

#include <fmt/format.h>

#include <utility>

namespace hexllm::cpu {
namespace {

using artifact::IoSpec;

std::string SlotName(size_t slot) {
  return slot == kOutSlot ? "output" : fmt::format("input {}", slot);
}

}  // namespace

Error BadPlan(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

StepChecker::StepChecker(const Instruction& instruction, const PlanScope& scope)
    : instruction_(instruction), scope_(scope) {
  checked_.step.rows = instruction.rows;
}

void StepChecker::WholeStep() {
  const int64_t first = instruction_.rows.first;
  if ((first == 0 || first == step_tokens()) && rows() == step_tokens()) return;
  Fail(BadPlan("expected all rows of the step"));
}

// --- Activations ---

// Reports operands of other kinds. What an instruction before has written to a
// graph output can be read.
bool StepChecker::IsActivation(size_t slot, const Operand& operand) {
  const bool output = slot == kOutSlot;
  if (operand.kind == OperandKind::kArena ||
      operand.kind == OperandKind::kOutput ||
      (operand.kind == OperandKind::kInput && !output)) {
    return true;
  }
  Fail(BadPlan(SlotName(slot) +
               (output ? ": expected scratch memory or a graph output"
                       : ": expected activations")));
  return false;
}

void StepChecker::In(size_t i, const Shape& shape) {
  if (!ok() || !IsActivation(i, instruction_.in[i])) return;
  Memory(i, instruction_.in[i], shape);
}

void StepChecker::Out(const Shape& shape) {
  if (!ok() || !IsActivation(kOutSlot, instruction_.out)) return;
  Memory(kOutSlot, instruction_.out, shape);
}

void StepChecker::InAndOut() {
  const Shape shape{rows(), step().width};
  In(0, shape);
  Out(shape);
}

void StepChecker::InBytes(size_t i, int64_t bytes) {
  if (!ok()) return;
  ArenaMemory(i, instruction_.in[i], static_cast<uint64_t>(bytes));
}

void StepChecker::OutBytes(int64_t bytes) {
  if (!ok()) return;
  ArenaMemory(kOutSlot, instruction_.out, static_cast<uint64_t>(bytes));
}

void StepChecker::InCodes(size_t i, DType dtype, const Shape& shape) {
  if (!ok()) return;
  if (instruction_.in[i].kind != OperandKind::kInput) {
    return Fail(BadPlan(SlotName(i) + ": expected a graph input"));
  }
  IoMemory(i, instruction_.in[i], dtype, shape);
}

void StepChecker::OutCodes(DType dtype, const Shape& shape) {
  if (!ok()) return;
  if (instruction_.out.kind != OperandKind::kOutput) {
    return Fail(BadPlan("output: expected a graph output"));
  }
  IoMemory(kOutSlot, instruction_.out, dtype, shape);
}

void StepChecker::Token(size_t i) {
  if (!ok()) return;
  const Operand& operand = instruction_.in[i];
  const std::vector<IoSpec>& inputs = scope_.entry.inputs;
  if (operand.kind != OperandKind::kInput || operand.index >= inputs.size() ||
      inputs[operand.index].dtype != DType::kI32) {
    return Fail(BadPlan(SlotName(i) + ": expected an i32 graph input"));
  }
  checked_.operands[i] = operand;
  IoBytes(i, inputs[operand.index],
          static_cast<uint64_t>(rows()) * sizeof(int32_t));
}

void StepChecker::Memory(size_t slot, const Operand& operand,
                         const Shape& shape) {
  const auto bytes = StorageBytes(DType::kF32, shape);
  if (!bytes) return Fail(BadPlan(SlotName(slot) + ": size overflow"));
  if (operand.kind == OperandKind::kArena) {
    return ArenaMemory(slot, operand, *bytes);
  }
  IoMemory(slot, operand, DType::kF32, shape);
}

void StepChecker::ArenaMemory(size_t slot, const Operand& operand,
                              uint64_t bytes) {
  checked_.operands[slot] = operand;
  if (operand.kind != OperandKind::kArena) {
    return Fail(BadPlan(SlotName(slot) + ": expected scratch memory"));
  }
  if (operand.index % kArenaAlignment == 0 &&
      operand.index <= scope_.arena_bytes &&
      bytes <= scope_.arena_bytes - operand.index) {
    return;
  }
  Fail(BadPlan(
      fmt::format("{}: {} bytes at {} do not fit the arena of {} bytes",
                  SlotName(slot), bytes, operand.index, scope_.arena_bytes)));
}

// An input or output of type `dtype` with room for `shape`.
void StepChecker::IoMemory(size_t slot, const Operand& operand, DType dtype,
                           const Shape& shape) {
  checked_.operands[slot] = operand;
  const auto& ios = operand.kind == OperandKind::kInput ? scope_.entry.inputs
                                                        : scope_.entry.outputs;
  if (operand.index >= ios.size()) {
    return Fail(
        BadPlan(fmt::format("{}: the graph has {} such inputs or outputs, "
                            "found number {}",
                            SlotName(slot), ios.size(), operand.index)));
  }
  const IoSpec& io = ios[operand.index];
  if (io.dtype != dtype) {
    return Fail(BadPlan(fmt::format("{}: expected {}, found {}", SlotName(slot),
                                    DTypeName(dtype), DTypeName(io.dtype))));
  }
  const auto bytes = StorageBytes(dtype, shape);
  if (!bytes) return Fail(BadPlan(SlotName(slot) + ": size overflow"));
  IoBytes(slot, io, *bytes);
}

void StepChecker::IoBytes(size_t slot, const IoSpec& io, uint64_t bytes) {
  const auto io_bytes = StorageBytes(io.dtype, io.shape);
  if (io_bytes && bytes <= *io_bytes) return;
  Fail(BadPlan(fmt::format("{}: needs {} bytes, {} has shape {}",
                           SlotName(slot), bytes, RoleToString(io.role),
                           ShapeToString(io.shape))));
}

// --- Weights ---

WeightView StepChecker::AnyWeight(size_t i) {
  if (!ok()) return {};
  const Operand& operand = instruction_.in[i];
  if (operand.kind != OperandKind::kWeight ||
      operand.index >= scope_.weights.size()) {
    Fail(BadPlan(SlotName(i) + ": expected one of the plan's weights"));
    return {};
  }
  const WeightView& weight = scope_.weights[operand.index];
  if (weight.rows > kMaxDim || weight.cols > kMaxDim) {
    Fail(BadPlan(SlotName(i) + ": weight too large"));
  }
  return weight;
}

WeightView StepChecker::Weight(size_t i, int64_t cols) {
  const WeightView weight = AnyWeight(i);
  if (!ok()) return weight;
  if (weight.layout != WeightLayout::kRows) {
    Fail(BadPlan(SlotName(i) + ": expected a weight in rows"));
  }
  if (cols >= 0 && weight.cols != cols) {
    Fail(BadPlan(fmt::format("{}: expected {} columns, found {}", SlotName(i),
                             cols, weight.cols)));
  }
  return weight;
}

WeightView StepChecker::Panels(size_t i) {
  const WeightView weight = AnyWeight(i);
  if (ok() && weight.layout != WeightLayout::kPanels) {
    Fail(BadPlan(SlotName(i) + ": expected a weight in panels"));
  }
  return weight;
}

void StepChecker::Vector(size_t i, int64_t width, DType dtype) {
  const WeightView weight = Weight(i, width);
  if (!ok()) return;
  const bool aligned =
      reinterpret_cast<uintptr_t>(weight.data) % alignof(float) == 0;
  if (weight.dtype != dtype || weight.rows != 1 || !aligned) {
    return Fail(BadPlan(fmt::format(
        "{}: expected an aligned {} vector of one row, found {}[{},{}]",
        SlotName(i), DTypeName(dtype), DTypeName(weight.dtype), weight.rows,
        weight.cols)));
  }
  // Kernels only read it.
  checked_.step.at[i] = const_cast<std::byte*>(weight.data);
}

// --- Numbers ---

int64_t StepChecker::Int(size_t i, int64_t least, int64_t most) {
  if (!ok()) return least;
  const int64_t value = instruction_.ints[i];
  if (value >= least && value <= most) return value;
  Fail(BadPlan(fmt::format("number {}: expected {} to {}, found {}", i, least,
                           most, value)));
  return least;
}

Activation StepChecker::GetActivation(size_t i) {
  return static_cast<Activation>(
      Int(i, 0, static_cast<int64_t>(Activation::kGeluErf)));
}

float StepChecker::Scale(size_t i) {
  const float scale = Float(i);
  if (ok() && !(scale > 0)) {
    Fail(BadPlan(fmt::format("a scale above 0 is expected, found {}", scale)));
  }
  return scale;
}

}  // namespace hexllm::cpu

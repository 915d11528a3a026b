#include "backend/cpu/engine_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace hexllm::cpu {
namespace {

// Above every width, head count and vocabulary; keeps products of checked
// numbers far from overflow.
constexpr int64_t kMaxDim = int64_t{1} << 26;

Error Bad(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

std::string SlotName(size_t slot) {
  return slot == kOutSlot ? "output" : fmt::format("input {}", slot);
}

// Fills a CheckedStep. Remembers the first failure; later calls then do
// nothing, so that the functions per op read as lists of demands.
class StepChecker {
 public:
  StepChecker(const Instruction& instruction, const PlanScope& scope)
      : instruction_(instruction), scope_(scope) {
    checked_.step.rows = instruction.rows;
  }

  int64_t rows() const { return instruction_.rows.count; }
  int64_t step_tokens() const { return scope_.entry.step_tokens; }
  int64_t past_tokens() const {
    return int64_t{scope_.entry.context_tokens} - step_tokens();
  }
  const KernelTable& kernels() const { return scope_.kernels; }
  bool has_input(size_t i) const {
    return i < instruction_.in.size() &&
           instruction_.in[i].kind != OperandKind::kNone;
  }
  bool ok() const { return status_.ok(); }
  Step& step() { return checked_.step; }

  // The instruction works on all rows of the step.
  void WholeStep();
  // Input `i` is f32 activations of this shape; the output likewise.
  void In(size_t i, const Shape& shape);
  void Out(const Shape& shape);
  // Input `i` is a graph input of i32 token ids, one per row.
  void Token(size_t i);
  // Input `i` is a weight of this many columns (any when negative).
  WeightView Weight(size_t i, int64_t cols);
  // Input `i` is f32[1,width].
  void Vector(size_t i, int64_t width);

  // Number `i`, at least `least`.
  int64_t Int(size_t i, int64_t least);
  Activation GetActivation(size_t i);
  float Float(size_t i) { return ok() ? instruction_.floats[i] : 0.0f; }
  void Scratch(int64_t floats) { checked_.scratch_floats = floats; }
  void Fail(Error error) {
    if (ok()) status_ = std::move(error);
  }

  Result<CheckedStep> Finish() && {
    HX_RETURN_IF_ERROR(std::move(status_));
    return std::move(checked_);
  }

 private:
  void Memory(size_t slot, const Operand& operand, const Shape& shape);
  void IoMemory(size_t slot, const artifact::IoSpec& io, uint64_t bytes);

  const Instruction& instruction_;
  const PlanScope& scope_;
  CheckedStep checked_;
  Status status_;
};

void StepChecker::WholeStep() {
  if (instruction_.rows.first == 0 && rows() == step_tokens()) return;
  Fail(Bad("expected all rows of the step"));
}

void StepChecker::In(size_t i, const Shape& shape) {
  if (!ok()) return;
  const Operand& operand = instruction_.in[i];
  if (operand.kind == OperandKind::kWeight ||
      operand.kind == OperandKind::kNone) {
    return Fail(Bad(SlotName(i) + ": expected activations"));
  }
  Memory(i, operand, shape);
}

void StepChecker::Out(const Shape& shape) {
  if (!ok()) return;
  const Operand& operand = instruction_.out;
  if (operand.kind != OperandKind::kArena &&
      operand.kind != OperandKind::kOutput) {
    return Fail(Bad("output: expected scratch memory or a graph output"));
  }
  Memory(kOutSlot, operand, shape);
}

void StepChecker::Token(size_t i) {
  if (!ok()) return;
  const Operand& operand = instruction_.in[i];
  const std::vector<artifact::IoSpec>& inputs = scope_.entry.inputs;
  if (operand.kind != OperandKind::kInput || operand.index >= inputs.size() ||
      inputs[operand.index].dtype != DType::kI32) {
    return Fail(Bad(SlotName(i) + ": expected an i32 graph input"));
  }
  checked_.operands[i] = operand;
  IoMemory(i, inputs[operand.index],
           static_cast<uint64_t>(rows()) * sizeof(int32_t));
}

void StepChecker::Memory(size_t slot, const Operand& operand,
                         const Shape& shape) {
  const auto bytes = StorageBytes(DType::kF32, shape);
  if (!bytes) return Fail(Bad(SlotName(slot) + ": size overflow"));
  checked_.operands[slot] = operand;
  if (operand.kind == OperandKind::kArena) {
    if (operand.index % kArenaAlignment != 0 ||
        operand.index > scope_.arena_bytes ||
        *bytes > scope_.arena_bytes - operand.index) {
      Fail(Bad(fmt::format(
          "{}: {} bytes at {} do not fit the arena of {} "
          "bytes",
          SlotName(slot), *bytes, operand.index, scope_.arena_bytes)));
    }
    return;
  }
  const auto& ios = operand.kind == OperandKind::kInput ? scope_.entry.inputs
                                                        : scope_.entry.outputs;
  if (operand.index >= ios.size()) {
    return Fail(
        Bad(fmt::format("{}: the graph has {} such inputs or outputs, "
                        "found number {}",
                        SlotName(slot), ios.size(), operand.index)));
  }
  if (ios[operand.index].dtype != DType::kF32) {
    return Fail(Bad(fmt::format("{}: expected f32, found {}", SlotName(slot),
                                DTypeName(ios[operand.index].dtype))));
  }
  IoMemory(slot, ios[operand.index], *bytes);
}

void StepChecker::IoMemory(size_t slot, const artifact::IoSpec& io,
                           uint64_t bytes) {
  const auto io_bytes = StorageBytes(io.dtype, io.shape);
  if (io_bytes && bytes <= *io_bytes) return;
  Fail(Bad(fmt::format("{}: needs {} bytes, {} has shape {}", SlotName(slot),
                       bytes, RoleToString(io.role), ShapeToString(io.shape))));
}

WeightView StepChecker::Weight(size_t i, int64_t cols) {
  if (!ok()) return {};
  const Operand& operand = instruction_.in[i];
  if (operand.kind != OperandKind::kWeight ||
      operand.index >= scope_.weights.size()) {
    Fail(Bad(SlotName(i) + ": expected one of the plan's weights"));
    return {};
  }
  const WeightView& weight = scope_.weights[operand.index];
  if (cols >= 0 && weight.cols != cols) {
    Fail(Bad(fmt::format("{}: expected {} columns, found {}", SlotName(i), cols,
                         weight.cols)));
  }
  if (weight.rows > kMaxDim || weight.cols > kMaxDim) {
    Fail(Bad(SlotName(i) + ": weight too large"));
  }
  return weight;
}

void StepChecker::Vector(size_t i, int64_t width) {
  const WeightView weight = Weight(i, width);
  if (!ok()) return;
  const bool aligned =
      reinterpret_cast<uintptr_t>(weight.data) % alignof(float) == 0;
  if (weight.dtype != DType::kF32 || weight.rows != 1 || !aligned) {
    return Fail(Bad(fmt::format(
        "{}: expected an aligned f32 vector of one "
        "row, found {}[{},{}]",
        SlotName(i), DTypeName(weight.dtype), weight.rows, weight.cols)));
  }
  // Kernels only read it.
  checked_.step.at[i] = const_cast<std::byte*>(weight.data);
}

int64_t StepChecker::Int(size_t i, int64_t least) {
  if (!ok()) return least;
  const int64_t value = instruction_.ints[i];
  if (value >= least && value <= kMaxDim) return value;
  Fail(Bad(fmt::format("number {}: expected {} to {}, found {}", i, least,
                       kMaxDim, value)));
  return least;
}

Activation StepChecker::GetActivation(size_t i) {
  const int64_t value = Int(i, 0);
  if (value > static_cast<int64_t>(Activation::kGeluErf)) {
    Fail(Bad(fmt::format("unknown activation {}", value)));
    return Activation::kSilu;
  }
  return static_cast<Activation>(value);
}

// --- One function per op: what it demands ---

void CheckEmbed(StepChecker& check) {
  Step& step = check.step();
  step.weight = check.Weight(1, -1);
  step.width = step.weight.cols;
  check.Token(0);
  check.Out({check.rows(), step.width});
}

void CheckMatMul(StepChecker& check) {
  Step& step = check.step();
  const WeightView w = check.Weight(1, -1);
  step.weight = w;
  step.width = w.rows;
  check.In(0, {check.rows(), w.cols});
  if (check.has_input(2)) check.Vector(2, w.rows);
  if (check.has_input(3)) check.In(3, {check.rows(), w.rows});
  check.Out({check.rows(), w.rows});
  const auto dtype = static_cast<size_t>(w.dtype);
  HX_CHECK(dtype < std::size(check.kernels().matmul));
  step.matmul = check.kernels().matmul[dtype];
  if (step.matmul == nullptr) {
    check.Fail(
        Error{ErrorCode::kUnsupported,
              fmt::format("no kernel for {} weights", DTypeName(w.dtype))});
  }
  check.Scratch(MatMulScratchFloats(w.cols));
}

void CheckRmsNorm(StepChecker& check) {
  Step& step = check.step();
  step.vectors = check.Int(0, 1);
  step.width = check.Int(1, 1);
  step.eps = check.Float(0);
  step.weight_offset = check.Float(1);
  const Shape shape{check.rows(), step.vectors, step.width};
  check.In(0, shape);
  check.Vector(1, step.width);
  check.Out(shape);
}

void CheckRope(StepChecker& check) {
  Step& step = check.step();
  step.heads = check.Int(0, 1);
  step.head_dim = check.Int(1, 1);
  step.half = check.Int(2, 0);
  if (2 * step.half > step.head_dim) {
    check.Fail(Bad(fmt::format("rotates {} of {} elements", 2 * step.half,
                               step.head_dim)));
  }
  const Shape shape{check.rows(), step.heads, step.head_dim};
  check.In(0, shape);
  check.In(1, {check.rows(), step.half});
  check.In(2, {check.rows(), step.half});
  check.Out(shape);
}

void CheckStore(StepChecker& check) {
  Step& step = check.step();
  step.kv_heads = check.Int(0, 1);
  step.head_dim = check.Int(1, 1);
  const Shape shape{check.rows(), step.kv_heads, step.head_dim};
  check.In(0, shape);
  check.Out(shape);
}

void CheckAttention(StepChecker& check) {
  check.WholeStep();
  Step& step = check.step();
  step.heads = check.Int(0, 1);
  step.kv_heads = check.Int(1, 1);
  step.head_dim = check.Int(2, 1);
  step.past = check.past_tokens();
  step.factor = check.Float(0);
  step.softcap = check.Float(1);
  if (step.heads % step.kv_heads != 0 || step.softcap < 0) {
    check.Fail(Bad(fmt::format("{} query heads on {} KV heads, softcap {}",
                               step.heads, step.kv_heads, step.softcap)));
  }
  const int64_t tokens = check.rows();
  const Shape q{tokens, step.heads, step.head_dim};
  const Shape past{step.kv_heads, step.past, step.head_dim};
  const Shape fresh{step.kv_heads, tokens, step.head_dim};
  check.In(0, q);
  check.In(1, past);
  check.In(2, past);
  check.In(3, fresh);
  check.In(4, fresh);
  check.In(5, {tokens, step.past + tokens});
  check.Out(q);
  if (!check.ok()) return;
  check.Scratch(
      AttentionScratchFloats(step.heads / step.kv_heads, step.past, tokens));
}

// kAdd and kMul.
void CheckTwo(StepChecker& check) {
  Step& step = check.step();
  step.width = check.Int(0, 1);
  const Shape shape{check.rows(), step.width};
  check.In(0, shape);
  check.In(1, shape);
  check.Out(shape);
}

// kScale and kSoftcap.
void CheckFactor(StepChecker& check) {
  Step& step = check.step();
  step.width = check.Int(0, 1);
  step.factor = check.Float(0);
  const Shape shape{check.rows(), step.width};
  check.In(0, shape);
  check.Out(shape);
}

void CheckActivate(StepChecker& check) {
  Step& step = check.step();
  step.width = check.Int(0, 1);
  step.activation = check.GetActivation(1);
  const Shape shape{check.rows(), step.width};
  check.In(0, shape);
  check.Out(shape);
}

void CheckGatedMul(StepChecker& check) {
  CheckTwo(check);
  check.step().activation = check.GetActivation(1);
}

void CheckCopyRows(StepChecker& check) {
  Step& step = check.step();
  step.from_row = check.Int(0, 0);
  step.width = check.Int(1, 1);
  check.In(0, {step.from_row + check.rows(), step.width});
  check.Out({check.rows(), step.width});
}

// How many operands and numbers each op has, in the order of PlanOp.
struct OpForm {
  std::string_view name;
  size_t min_inputs;
  size_t max_inputs;
  size_t ints;
  size_t floats;
  void (*check)(StepChecker&);
};
constexpr OpForm kForms[] = {
    {"embed", 2, 2, 0, 0, CheckEmbed},
    {"matmul", 2, 4, 0, 0, CheckMatMul},
    {"rms_norm", 2, 2, 2, 2, CheckRmsNorm},
    {"rope", 3, 3, 3, 0, CheckRope},
    {"store_k", 1, 1, 2, 0, CheckStore},
    {"store_v", 1, 1, 2, 0, CheckStore},
    {"attention", 6, 6, 3, 2, CheckAttention},
    {"add", 2, 2, 1, 0, CheckTwo},
    {"mul", 2, 2, 1, 0, CheckTwo},
    {"scale", 1, 1, 1, 1, CheckFactor},
    {"activate", 1, 1, 2, 0, CheckActivate},
    {"gated_mul", 2, 2, 2, 0, CheckGatedMul},
    {"softcap", 1, 1, 1, 1, CheckFactor},
    {"copy_rows", 1, 1, 2, 0, CheckCopyRows},
};
static_assert(std::size(kForms) == kNumPlanOps);

const OpForm& FormOf(PlanOp op) {
  HX_CHECK(static_cast<size_t>(op) < std::size(kForms));
  return kForms[static_cast<size_t>(op)];
}

Status CheckForm(const Instruction& instruction, const OpForm& form) {
  const size_t inputs = instruction.in.size();
  if (inputs < form.min_inputs || inputs > form.max_inputs ||
      instruction.ints.size() != form.ints ||
      instruction.floats.size() != form.floats) {
    return Bad(fmt::format(
        "expected {} to {} inputs, {} and {} numbers, found {}, {} and {}",
        form.min_inputs, form.max_inputs, form.ints, form.floats, inputs,
        instruction.ints.size(), instruction.floats.size()));
  }
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(instruction.floats.begin(), instruction.floats.end(),
                   finite)) {
    return Bad("a number is not finite");
  }
  return OkStatus();
}

// Rows of the step, or memory that is not laid out by them (first == T).
Status CheckRows(const RowRange& rows, int64_t step_tokens) {
  const bool in_step = rows.first >= 0 && rows.first < step_tokens &&
                       rows.count <= step_tokens - rows.first;
  const bool free = rows.first == step_tokens && rows.count <= kMaxDim;
  if (rows.count >= 1 && (in_step || free)) return OkStatus();
  return Bad(fmt::format("{} rows from row {} of a step of {}", rows.count,
                         rows.first, step_tokens));
}

}  // namespace

std::string_view PlanOpName(PlanOp op) { return FormOf(op).name; }

Result<CheckedStep> CheckInstruction(const Instruction& instruction,
                                     const PlanScope& scope) {
  const OpForm& form = FormOf(instruction.op);
  HX_RETURN_IF_ERROR(CheckForm(instruction, form));
  HX_RETURN_IF_ERROR(CheckRows(instruction.rows, scope.entry.step_tokens));
  StepChecker checker(instruction, scope);
  checker.step().run = FindRun(instruction.op);
  form.check(checker);
  return std::move(checker).Finish();
}

}  // namespace hexllm::cpu

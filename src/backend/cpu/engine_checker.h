// One instruction being checked: the demands that the check functions
// (engine_checks.h) make on its operands and numbers, and the Step that they
// fill. Internal to cpu/engine_check*.
#pragma once

#include <string>

#include "backend/cpu/engine_check.h"
#include "backend/cpu/engine_ops.h"
#include "base/status.h"

namespace hexllm::cpu {

Error BadPlan(std::string message);

// Fills a CheckedStep. Remembers the first failure; later calls then do
// nothing, so that the functions per op read as lists of demands.
class StepChecker {
 public:
  StepChecker(const Instruction& instruction, const PlanScope& scope);

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
  // Input 0 and the output are both [rows, width of the step].
  void InAndOut();
  // Input `i` is this many bytes of scratch memory; the output likewise.
  void InBytes(size_t i, int64_t bytes);
  void OutBytes(int64_t bytes);
  // Input `i` is a graph input of codes; the output is a graph output of them.
  void InCodes(size_t i, DType dtype, const Shape& shape);
  void OutCodes(DType dtype, const Shape& shape);
  // Input `i` is a graph input of i32 token ids, one per row.
  void Token(size_t i);
  // Input `i` is a weight in rows, of this many columns (any when negative).
  WeightView Weight(size_t i, int64_t cols);
  // Input `i` is a weight in either layout.
  WeightView AnyWeight(size_t i);
  // Input `i` is a weight in panels.
  WeightView Panels(size_t i);
  // Input `i` is an aligned vector [1,width] of 4-byte numbers.
  void Vector(size_t i, int64_t width, DType dtype = DType::kF32);

  // Number `i`, from `least` to `most`.
  int64_t Int(size_t i, int64_t least, int64_t most = kMaxDim);
  Activation GetActivation(size_t i);
  float Float(size_t i) { return ok() ? instruction_.floats[i] : 0.0f; }
  // Number `i`, which must be above 0.
  float Scale(size_t i);
  void Scratch(int64_t floats) { checked_.scratch_floats = floats; }
  void Fail(Error error) {
    if (ok()) status_ = std::move(error);
  }

  Result<CheckedStep> Finish() && {
    HX_RETURN_IF_ERROR(std::move(status_));
    return std::move(checked_);
  }

 private:
  bool IsActivation(size_t slot, const Operand& operand);
  void Memory(size_t slot, const Operand& operand, const Shape& shape);
  void ArenaMemory(size_t slot, const Operand& operand, uint64_t bytes);
  void IoMemory(size_t slot, const Operand& operand, DType dtype,
                const Shape& shape);
  void IoBytes(size_t slot, const artifact::IoSpec& io, uint64_t bytes);

  const Instruction& instruction_;
  const PlanScope& scope_;
  CheckedStep checked_;
  Status status_;
};

}  // namespace hexllm::cpu

#include "backend/cpu/engine_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "backend/cpu/engine_checks.h"
#include "base/check.h"

namespace hexllm::cpu {
namespace {

// --- Norms and element-wise ops: what they demand ---

void CheckNorm(StepChecker& check) {
  Step& step = check.step();
  step.vectors = check.Int(0, 1);
  step.width = check.Int(1, 1);
  step.eps = check.Float(0);
  const Shape shape{check.rows(), step.vectors, step.width};
  check.In(0, shape);
  check.Vector(1, step.width);
  check.Out(shape);
}

void CheckRmsNorm(StepChecker& check) {
  check.step().weight_offset = check.Float(1);
  CheckNorm(check);
}

void CheckChipRmsNorm(StepChecker& check) {
  Step& step = check.step();
  step.fast_root = check.Int(2, 0, 1) != 0;
  step.to = {.scale = check.Float(2) == 0 ? 0 : check.Scale(2),
             .zero_point = static_cast<int32_t>(check.Int(3, 0, 65535)),
             .least = 0,
             .most = 65535};
  CheckRmsNorm(check);
}

void CheckLayerNorm(StepChecker& check) {
  CheckNorm(check);
  check.Vector(2, check.step().width);
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
  check.InAndOut();
}

void CheckActivate(StepChecker& check) {
  Step& step = check.step();
  step.width = check.Int(0, 1);
  step.activation = check.GetActivation(1);
  check.InAndOut();
}

void CheckGatedMul(StepChecker& check) {
  CheckTwo(check);
  check.step().activation = check.GetActivation(1);
}

void CheckAddRow(StepChecker& check) {
  Step& step = check.step();
  step.width = check.Int(0, 1);
  const Shape shape{check.rows(), step.width};
  check.In(0, shape);
  check.In(1, {step.width});
  check.Out(shape);
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
    {"decode", 1, 1, 3, 1, CheckDecode},
    {"encode", 1, 1, 3, 1, CheckEncode},
    {"round", 1, 1, 4, 1, CheckRound},
    {"round_f16", 1, 1, 1, 0, CheckRoundF16},
    {"quantize_rows", 1, 1, 1, 0, CheckQuantizeRows},
    {"matmul_q", 2, 4, 0, 0, CheckMatMulQ},
    {"row_codes", 1, 1, 3, 1, CheckRowCodes},
    {"code_matmul", 4, 5, 3, 1, CheckCodeMatMul},
    {"batch_matmul", 2, 2, 5, 3, CheckBatchMatMul},
    {"softmax", 1, 1, 1, 0, CheckSoftmax},
    {"concat", 2, 2, 2, 0, CheckConcat},
    {"transpose", 1, 1, 8, 0, CheckTranspose},
    {"add_row", 2, 2, 1, 0, CheckAddRow},
    {"layer_norm", 3, 3, 2, 1, CheckLayerNorm},
    {"convert_codes", 1, 1, 6, 2, CheckConvertCodes},
    {"convert_halves", 1, 1, 2, 1, CheckConvertHalves},
    {"fixed_point_matmul", 4, 5, 2, 2, CheckFixedPointMatMul},
    {"chip_rms_norm", 2, 2, 4, 3, CheckChipRmsNorm},
    {"chip_softmax", 1, 1, 1, 1, CheckChipSoftmax},
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
    return BadPlan(fmt::format(
        "expected {} to {} inputs, {} and {} numbers, found {}, {} and {}",
        form.min_inputs, form.max_inputs, form.ints, form.floats, inputs,
        instruction.ints.size(), instruction.floats.size()));
  }
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(instruction.floats.begin(), instruction.floats.end(),
                   finite)) {
    return BadPlan("a number is not finite");
  }
  return OkStatus();
}

// Rows of the step, or memory that is not laid out by them (first == T).
Status CheckRows(const RowRange& rows, int64_t step_tokens) {
  const bool in_step = rows.first >= 0 && rows.first < step_tokens &&
                       rows.count <= step_tokens - rows.first;
  const bool free = rows.first == step_tokens && rows.count <= kMaxDim;
  if (rows.count >= 1 && (in_step || free)) return OkStatus();
  return BadPlan(fmt::format("{} rows from row {} of a step of {}", rows.count,
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

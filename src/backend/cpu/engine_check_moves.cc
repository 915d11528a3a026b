// Checks of the ops that only move numbers.
#include <algorithm>

#include "backend/cpu/engine_checks.h"

namespace hexllm::cpu {

void CheckStore(StepChecker& check) {
  Step& step = check.step();
  step.kv_heads = check.Int(0, 1);
  step.head_dim = check.Int(1, 1);
  const Shape shape{check.rows(), step.kv_heads, step.head_dim};
  check.In(0, shape);
  check.Out(shape);
}

void CheckCopyRows(StepChecker& check) {
  Step& step = check.step();
  step.from_row = check.Int(0, 0);
  step.width = check.Int(1, 1);
  check.In(0, {step.from_row + check.rows(), step.width});
  check.Out({check.rows(), step.width});
}

void CheckConcat(StepChecker& check) {
  Step& step = check.step();
  step.left = check.Int(0, 0);
  const int64_t right = check.Int(1, 1);
  step.width = step.left + right;
  check.In(0, {check.rows(), step.left});
  check.In(1, {check.rows(), right});
  check.Out({check.rows(), step.width});
}

void CheckTranspose(StepChecker& check) {
  Step& step = check.step();
  Shape shape;
  std::array<int64_t, 4> strides = {};
  std::array<bool, 4> seen = {};
  for (size_t i = 0; i < 4; ++i) shape.push_back(check.Int(i, 1));
  check.In(0, shape);
  check.Out(shape);
  if (!check.ok()) return;
  // The sizes fit memory that exists, so products do not overflow.
  int64_t stride = 1;
  for (size_t i = 4; i-- > 0; stride *= shape[i]) strides[i] = stride;
  for (size_t i = 0; i < 4; ++i) {
    const auto axis = static_cast<size_t>(check.Int(4 + i, 0, 3));
    step.dims[i] = shape[axis];
    step.strides[i] = strides[axis];
    if (seen[axis]) check.Fail(BadPlan("an axis is moved twice"));
    seen[axis] = true;
  }
  if (check.rows() != 1) check.Fail(BadPlan("expected one row"));
}

}  // namespace hexllm::cpu

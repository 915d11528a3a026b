// Checks of attention, whole and in parts.
#include <fmt/format.h>

#include <cmath>

#include "backend/cpu/engine_checks.h"

namespace hexllm::cpu {

void CheckRope(StepChecker& check) {
  Step& step = check.step();
  step.heads = check.Int(0, 1);
  step.head_dim = check.Int(1, 1);
  step.half = check.Int(2, 0);
  if (2 * step.half > step.head_dim) {
    check.Fail(BadPlan(fmt::format("rotates {} of {} elements", 2 * step.half,
                                   step.head_dim)));
  }
  const Shape shape{check.rows(), step.heads, step.head_dim};
  check.In(0, shape);
  check.In(1, {check.rows(), step.half});
  check.In(2, {check.rows(), step.half});
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
    check.Fail(BadPlan(fmt::format("{} query heads on {} KV heads, softcap {}",
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

void CheckBatchMatMul(StepChecker& check) {
  Step& step = check.step();
  step.matrix_rows = check.Int(0, 1);
  step.inner = check.Int(1, 1);
  step.width = check.Int(2, 1);
  step.factor = check.Float(0);
  step.a_step = check.Float(1);
  step.b_step = check.Float(2);
  const auto usable = [](float grid_step) {
    return grid_step > 0 && std::isnormal(grid_step) &&
           std::isnormal(1 / grid_step);
  };
  step.grid.zero_point = static_cast<int32_t>(check.Int(3, 0, 65535));
  step.dropped_bits = check.Int(4, 0, 31);
  const bool plain = step.a_step == 0 && step.b_step == 0;
  if (plain && step.dropped_bits > 0)
    check.Fail(BadPlan("dropped bits without grid steps"));
  if (!plain && !(usable(step.a_step) && usable(step.b_step))) {
    check.Fail(
        BadPlan(fmt::format("grid steps {} and {}", step.a_step, step.b_step)));
  }
  check.In(0, {check.rows(), step.matrix_rows, step.inner});
  check.In(1, {check.rows(), step.inner, step.width});
  check.Out({check.rows(), step.matrix_rows, step.width});
  check.Scratch((kBatchMatMulScratch + step.width) *
                int64_t{sizeof(double) / sizeof(float)});
}

void CheckSoftmax(StepChecker& check) {
  check.step().width = check.Int(0, 1);
  check.InAndOut();
}

}  // namespace hexllm::cpu

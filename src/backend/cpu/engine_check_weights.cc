// Checks of the ops that read a weight.
#include <fmt/format.h>

#include <iterator>

#include "backend/cpu/engine_checks.h"
#include "backend/cpu/kernels/packed.h"
#include "backend/cpu/row_codes.h"
#include "base/check.h"
#include "base/dequantize.h"

namespace hexllm::cpu {

void CheckEmbed(StepChecker& check) {
  Step& step = check.step();
  step.weight = check.AnyWeight(1);
  step.width = step.weight.cols;
  if (check.ok() && !IsFloatLike(step.weight.dtype)) {
    check.Fail(
        BadPlan(fmt::format("input 1: expected a table of numbers, found "
                            "{}",
                            DTypeName(step.weight.dtype))));
  }
  check.Token(0);
  check.Out({check.rows(), step.width});
  // A row that is unpacked.
  const auto floats = static_cast<int64_t>(sizeof(float));
  check.Scratch((step.weight.row_bytes + floats - 1) / floats);
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

void CheckQuantizeRows(StepChecker& check) {
  Step& step = check.step();
  step.inner = check.Int(0, kQuantBlock);
  if (step.inner % kQuantBlock != 0) {
    check.Fail(BadPlan(fmt::format("expected whole blocks of {}, found {}",
                                   kQuantBlock, step.inner)));
  }
  check.In(0, {check.rows(), step.inner});
  check.OutBytes(QuantizedBytes(check.rows(), step.inner));
}

void CheckMatMulQ(StepChecker& check) {
  Step& step = check.step();
  const WeightView w = check.Panels(1);
  step.weight = w;
  step.width = w.rows;
  const auto dtype = static_cast<size_t>(w.dtype);
  HX_CHECK(dtype < std::size(check.kernels().matmul_q));
  step.matmul_q = check.kernels().matmul_q[dtype];
  if (check.ok() && step.matmul_q == nullptr) {
    check.Fail(
        Error{ErrorCode::kUnsupported,
              fmt::format("no kernel for {} panels", DTypeName(w.dtype))});
  }
  check.InBytes(0, QuantizedBytes(check.rows(), w.cols));
  if (check.has_input(2)) check.Vector(2, w.rows);
  if (check.has_input(3)) check.In(3, {check.rows(), w.rows});
  check.Out({check.rows(), w.rows});
}

}  // namespace hexllm::cpu

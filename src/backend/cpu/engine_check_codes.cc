// Checks of the ops that round to codes, and of the matmul of codes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "backend/cpu/engine_checks.h"
#include "backend/cpu/row_codes.h"

namespace hexllm::cpu {
namespace {

// Sums of products of 8-bit codes stay within i32.
constexpr int64_t kMaxCodeDepth = 65536;

// Element types of encoded graph inputs and outputs.
struct CodeType {
  DType dtype;
  int32_t least;
  int32_t most;
};
constexpr CodeType kCodeTypes[] = {{DType::kU8, 0, 255},
                                   {DType::kU16, 0, 65535},
                                   {DType::kI8, -128, 127},
                                   {DType::kI16, -32768, 32767},
                                   {DType::kF16, 0, 0}};

CodeType GetCodeType(StepChecker& check, size_t i) {
  const int64_t value = check.Int(i, 0);
  const auto* found = std::find_if(
      std::begin(kCodeTypes), std::end(kCodeTypes), [&](const CodeType& type) {
        return static_cast<int64_t>(type.dtype) == value;
      });
  if (found != std::end(kCodeTypes)) return *found;
  check.Fail(BadPlan(fmt::format("{} is no type of codes", value)));
  return kCodeTypes[0];
}

// A scale and its reciprocal are numbers that kernels can use.
float GridScale(StepChecker& check, size_t i) {
  const float scale = check.Scale(i);
  if (check.ok() && !(std::isnormal(scale) && std::isnormal(1 / scale))) {
    check.Fail(BadPlan(fmt::format("scale {} is too small or large", scale)));
  }
  return scale;
}

// A grid of u8: its zero point and scale are numbers `zero_point` and `scale`.
Grid ByteGrid(StepChecker& check, size_t zero_point, size_t scale) {
  return {.scale = GridScale(check, scale),
          .zero_point = static_cast<int32_t>(check.Int(zero_point, 0, 255)),
          .least = 0,
          .most = 255};
}

// What kDecode and kEncode have in common.
void CheckCodec(StepChecker& check) {
  Step& step = check.step();
  step.width = check.Int(0, 1);
  const CodeType type = GetCodeType(check, 1);
  step.dtype = type.dtype;
  step.grid = {
      .scale = GridScale(check, 0),
      .zero_point = static_cast<int32_t>(check.Int(2, type.least, type.most)),
      .least = type.least,
      .most = type.most};
}

}  // namespace

void CheckDecode(StepChecker& check) {
  CheckCodec(check);
  const Shape shape{check.rows(), check.step().width};
  check.InCodes(0, check.step().dtype, shape);
  check.Out(shape);
}

void CheckEncode(StepChecker& check) {
  CheckCodec(check);
  const Shape shape{check.rows(), check.step().width};
  check.In(0, shape);
  check.OutCodes(check.step().dtype, shape);
}

void CheckRound(StepChecker& check) {
  // Codes are exact in f32.
  constexpr int64_t kLimit = 65536;
  Step& step = check.step();
  step.width = check.Int(0, 1);
  step.grid = {
      .scale = GridScale(check, 0),
      .zero_point = static_cast<int32_t>(check.Int(3, -kLimit, kLimit)),
      .least = static_cast<int32_t>(check.Int(1, -kLimit, kLimit)),
      .most = static_cast<int32_t>(check.Int(2, -kLimit, kLimit))};
  if (step.grid.least > step.grid.most) {
    check.Fail(BadPlan(
        fmt::format("codes from {} to {}", step.grid.least, step.grid.most)));
  }
  check.InAndOut();
}

void CheckRoundF16(StepChecker& check) {
  check.step().width = check.Int(0, 1);
  check.InAndOut();
}

void CheckConvertHalves(StepChecker& check) {
  Step& step = check.step();
  step.width = check.Int(0, 1);
  step.to = ByteGrid(check, 1, 0);
  check.InAndOut();
}

void CheckChipSoftmax(StepChecker& check) {
  Step& step = check.step();
  constexpr int64_t kMostWidth = int64_t{1} << 20;  // of the kernel
  step.width = check.Int(0, 1, kMostWidth);
  step.grid.scale = GridScale(check, 0);
  check.InAndOut();
}

void CheckConvertCodes(StepChecker& check) {
  Step& step = check.step();
  step.width = check.Int(0, 1);
  constexpr int64_t kMostOffset = int64_t{1} << 24;
  step.conversion = {
      .multiplier = static_cast<int32_t>(check.Int(1, 1, 1 << 14)),
      .shift = static_cast<int32_t>(check.Int(2, 16, 22)),
      .offset = static_cast<int32_t>(check.Int(3, -kMostOffset, kMostOffset))};
  step.grid = {.scale = GridScale(check, 0),
               .zero_point = static_cast<int32_t>(check.Int(4, 0, 65535)),
               .least = 0,
               .most = 65535};
  step.to = ByteGrid(check, 5, 1);
  check.InAndOut();
}

// The grid of codes of one or two bytes: number `first`, then the zero point.
Grid UnsignedGrid(StepChecker& check, size_t first) {
  const int32_t most = check.Int(first, 1, 2) == 2 ? 65535 : 255;
  return {.scale = GridScale(check, 0),
          .zero_point = static_cast<int32_t>(check.Int(first + 1, 0, most)),
          .least = 0,
          .most = most};
}

void CheckRowCodes(StepChecker& check) {
  Step& step = check.step();
  step.inner = check.Int(0, 1, kMaxCodeDepth);
  step.grid = UnsignedGrid(check, 1);
  check.In(0, {check.rows(), step.inner});
  check.OutBytes(RowCodesBytes(check.rows(), step.inner));
}

// What both matmuls of codes have in common.
void CheckMatMulOperands(StepChecker& check) {
  Step& step = check.step();
  const WeightView w = check.Panels(1);
  step.weight = w;
  step.width = w.rows;
  if (w.cols > kMaxCodeDepth ||
      (w.dtype != DType::kI8 && w.dtype != DType::kI16)) {
    check.Fail(BadPlan(fmt::format(
        "input 1: expected i8 or i16 of up to {} columns, found {}[{},{}]",
        kMaxCodeDepth, DTypeName(w.dtype), w.rows, w.cols)));
  }
  if (!check.ok()) return;
  check.InBytes(0, RowCodesBytes(check.rows(), w.cols));
  check.Vector(2, w.rows);
  check.Vector(3, w.rows, DType::kI32);
  if (check.has_input(4)) check.Vector(4, w.rows, DType::kI32);
  check.Out({check.rows(), w.rows});
}

void CheckCodeMatMul(StepChecker& check) {
  check.step().grid = UnsignedGrid(check, 0);
  check.step().dropped_bits = check.Int(2, 0, 31);
  CheckMatMulOperands(check);
}

void CheckFixedPointMatMul(StepChecker& check) {
  check.step().grid = ByteGrid(check, 0, 0);
  check.step().to = ByteGrid(check, 1, 1);
  CheckMatMulOperands(check);
}

}  // namespace hexllm::cpu

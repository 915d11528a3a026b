// Resolved instructions and how they run. Made by engine_load, run by engine.
// Everything was checked when the plan was loaded: steps cannot fail and do not
// allocate. Internal to cpu/engine*.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/plan.h"
#include "base/dtype.h"
#include "base/thread_pool.h"

namespace hexllm::cpu {

// A weight in the artifact: [rows, cols] of `dtype`.
struct WeightView {
  const std::byte* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  WeightLayout layout = WeightLayout::kRows;
  int64_t bytes = 0;      // of all of it
  int64_t row_bytes = 0;  // of a row as stored, in panels too; 0 for i8, i16
                          // and i32
};

inline constexpr size_t kMaxInputs = 6;
// The output's place in Step::at.
inline constexpr size_t kOutSlot = kMaxInputs;

struct Step;

// What a step needs while it runs.
struct RunContext {
  ThreadPool& pool;
  const KernelTable& kernels;
  int64_t grain_work;      // EngineOptions::grain_work
  float* scratch;          // one part per thread
  int64_t scratch_stride;  // floats from one thread's part to the next
  int64_t begin;           // first row of the step that is no padding
};

// ir::CodeConversion, which the engine does not know: how codes of u16 become
// codes of u8.
struct FixedPoint {
  int32_t multiplier = 1;
  int32_t shift = 16;
  int32_t offset = 0;
};

// How codes stand for numbers: value = scale * (code - zero_point).
struct Grid {
  float scale = 0;
  int32_t zero_point = 0;
  int32_t least = 0;  // codes go from least to most
  int32_t most = 0;
};

// rint for |x| up to 2^22, half to even, in two additions.
inline float RoundToInt(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23
  return (x + kShift) - kShift;
}

using RunFn = void (*)(const Step&, const RunContext&);

// One instruction with its operands found. Numbers that an op does not use are
// 0; axes as in plan_ops.h.
struct Step {
  RunFn run = nullptr;
  // Inputs in the order of plan_ops.h, then the output. Null: absent. Graph
  // inputs and outputs are filled in by Bind.
  std::array<std::byte*, kMaxInputs + 1> at = {};
  RowRange rows;
  int64_t width = 0;    // M, N or width: floats of an output row (of a norm: M)
  int64_t vectors = 0;  // n of kRmsNorm
  int64_t heads = 0;    // H
  int64_t kv_heads = 0;  // G
  int64_t head_dim = 0;  // D
  int64_t half = 0;      // R/2
  int64_t past = 0;      // P
  int64_t from_row = 0;  // `begin` of kCopyRows
  float factor = 0;      // factor, cap or scale
  float softcap = 0;
  float eps = 0;
  float weight_offset = 0;
  bool fast_root = false;  // of kChipRmsNorm
  Activation activation = Activation::kSilu;
  MatMulFn matmul = nullptr;
  MatMulQFn matmul_q = nullptr;
  WeightView weight;         // of kEmbed and the matmuls of weights
  int64_t inner = 0;         // K of kQuantizeRows, kRowCodes and kBatchMatMul
  int64_t dropped_bits = 0;  // of kCodeMatMul and kBatchMatMul
  int64_t matrix_rows = 0;   // M of kBatchMatMul
  Grid grid;  // of kDecode, kEncode, kRound, kRowCodes, kChipSoftmax and the
              // matmuls of codes
  // Of the output of kConvertCodes, kConvertHalves, kFixedPointMatMul and
  // kChipRmsNorm (scale 0: none).
  Grid to;
  FixedPoint conversion;      // of kConvertCodes
  DType dtype = DType::kF32;  // of codes
  float a_step = 0;           // of kBatchMatMul
  float b_step = 0;
  int64_t left = 0;                     // of kConcat
  std::array<int64_t, 4> dims = {};     // of kTranspose
  std::array<int64_t, 4> strides = {};  // of its output axes, in the input

  const float* In(size_t i) const {
    return reinterpret_cast<const float*>(at[i]);
  }
  float* Out() const { return reinterpret_cast<float*>(at[kOutSlot]); }
};

RunFn FindRun(PlanOp op);

// --- How each op runs; one file per family ---

// engine_ops_weights.cc
void RunEmbed(const Step& step, const RunContext& context);
void RunMatMul(const Step& step, const RunContext& context);
void RunQuantizeRows(const Step& step, const RunContext& context);
void RunMatMulQ(const Step& step, const RunContext& context);
// engine_ops_codes.cc
void RunDecode(const Step& step, const RunContext& context);
void RunEncode(const Step& step, const RunContext& context);
void RunRound(const Step& step, const RunContext& context);
void RunRoundF16(const Step& step, const RunContext& context);
void RunConvertCodes(const Step& step, const RunContext& context);
void RunConvertHalves(const Step& step, const RunContext& context);
void RunRowCodes(const Step& step, const RunContext& context);
void RunCodeMatMul(const Step& step, const RunContext& context);
void RunFixedPointMatMul(const Step& step, const RunContext& context);
void RunChipRmsNorm(const Step& step, const RunContext& context);
void RunChipSoftmax(const Step& step, const RunContext& context);
// engine_ops_attention.cc
void RunRope(const Step& step, const RunContext& context);
void RunAttention(const Step& step, const RunContext& context);
void RunBatchMatMul(const Step& step, const RunContext& context);
void RunSoftmax(const Step& step, const RunContext& context);
// engine_ops_moves.cc
void RunStoreK(const Step& step, const RunContext& context);
void RunStoreV(const Step& step, const RunContext& context);
void RunCopyRows(const Step& step, const RunContext& context);
void RunConcat(const Step& step, const RunContext& context);
void RunTranspose(const Step& step, const RunContext& context);

}  // namespace hexllm::cpu

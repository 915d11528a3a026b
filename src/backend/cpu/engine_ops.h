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
  int64_t row_bytes = 0;
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
  Activation activation = Activation::kSilu;
  MatMulFn matmul = nullptr;
  WeightView weight;  // of kEmbed and kMatMul

  const float* In(size_t i) const {
    return reinterpret_cast<const float*>(at[i]);
  }
  float* Out() const { return reinterpret_cast<float*>(at[kOutSlot]); }
};

RunFn FindRun(PlanOp op);

}  // namespace hexllm::cpu

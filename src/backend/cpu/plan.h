// A CPU plan as plain data, and its form on disk (plan.fbs). Written by
// cpu/lower*, read by cpu/engine_load. What the instructions mean: plan_ops.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu/plan_ops.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/status.h"

namespace hexllm::cpu {

inline constexpr uint32_t kPlanFormatVersion = 4;
// Alignment of arena operands, in bytes.
inline constexpr uint64_t kArenaAlignment = 64;

// Where an operand lives; what `index` is.
enum class OperandKind : uint8_t {
  kNone,    // an absent optional operand
  kArena,   // scratch of the graph: byte offset, a multiple of kArenaAlignment
  kInput,   // graph input
  kOutput,  // graph output
  kWeight,  // Plan::weights
};

struct Operand {
  OperandKind kind = OperandKind::kNone;
  uint64_t index = 0;
  bool operator==(const Operand&) const = default;
};

// How the elements of a weight lie in its segment.
enum class WeightLayout : uint8_t {
  kRows,    // row after row, as stored
  kPanels,  // in panels of 16 rows for integer kernels (kernels/packed.h).
            // i16: the panels of the high bytes, then those of the low bytes
            // less 128
};

// A weight as [rows, cols] of `dtype`, alone in an artifact segment. Vectors
// have one row.
struct PlanWeight {
  uint32_t segment = 0;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  WeightLayout layout = WeightLayout::kRows;
};

// Consecutive rows of the step. `first` == T: not rows of the step.
struct RowRange {
  int64_t first = 0;
  int64_t count = 0;
  bool operator==(const RowRange&) const = default;
};

struct Instruction {
  PlanOp op = PlanOp::kAdd;
  std::vector<Operand> in = {};
  Operand out = {};
  RowRange rows = {};
  std::vector<int64_t> ints = {};
  std::vector<float> floats = {};
  std::string name = {};  // provenance, for messages
};

struct Plan {
  uint64_t arena_bytes = 0;
  int64_t step_tokens = 1;     // T
  int64_t context_tokens = 1;  // C
  std::vector<PlanWeight> weights = {};
  std::vector<Instruction> code = {};
};

// The FlatBuffers form of `plan`. Equal plans give equal bytes.
std::string SerializePlan(const Plan& plan);

// Reads a plan; `bytes` are aligned to 8, as segments are. kBadInput for bytes
// that are no plan of this version or hold an unknown op, operand kind or
// dtype. Checks the form only: indices, sizes and numbers may still be anything
// (see cpu/engine_load.h).
Result<Plan> ParsePlan(ByteSpan bytes);

}  // namespace hexllm::cpu

// Checks one instruction of a plan against the memory that it names and turns
// it into a Step. Internal to cpu/engine_load.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "artifact/manifest.h"
#include "backend/cpu/engine_ops.h"
#include "backend/cpu/plan.h"
#include "base/status.h"

namespace hexllm::cpu {

// Above every width, head count and vocabulary; keeps products of checked
// numbers far from overflow.
inline constexpr int64_t kMaxDim = int64_t{1} << 26;

// What the operands of a plan can name.
struct PlanScope {
  const artifact::GraphEntry& entry;
  const KernelTable& kernels;
  uint64_t arena_bytes = 0;
  std::vector<WeightView> weights = {};
};

// A step whose arena and graph memory is still to be filled in.
struct CheckedStep {
  Step step;
  std::array<Operand, kMaxInputs + 1> operands;  // as Step::at
  int64_t scratch_floats = 0;
};

// kBadInput (kUnsupported for a weight type without kernel) says what is wrong;
// the caller adds which instruction it is.
Result<CheckedStep> CheckInstruction(const Instruction& instruction,
                                     const PlanScope& scope);

std::string_view PlanOpName(PlanOp op);

}  // namespace hexllm::cpu

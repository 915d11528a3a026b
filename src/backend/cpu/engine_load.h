// Turns a plan from an artifact, which may be hostile, into steps that cannot
// fail. Internal to cpu/engine*.
#pragma once

#include <span>
#include <vector>

#include "artifact/artifact.h"
#include "backend/cpu/engine_ops.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/engine.h"
#include "base/status.h"

namespace hexllm::cpu {

// Token ids that must be checked before each run: they index the rows of an
// embedding table.
struct TokenCheck {
  size_t input = 0;  // graph input, i32
  int64_t vocab = 0;
  RowRange rows;
};

// A slot of a step that holds the address of a graph input or output.
struct IoSlot {
  size_t step = 0;
  size_t slot = 0;
};

struct Program {
  std::vector<Step> steps;
  Buffer arena;
  int64_t scratch_floats = 0;  // that one thread needs
  std::vector<TokenCheck> token_checks;
  // By input or output of the graph's manifest entry.
  std::vector<std::vector<IoSlot>> input_slots;
  std::vector<std::vector<IoSlot>> output_slots;
};

// Loads the plan of graph `index` and checks every number in it against the
// manifest and the segments. kBadInput names segment and instruction;
// kUnsupported when `kernels` lacks a weight type.
Result<Program> LoadProgram(const artifact::Artifact& artifact, size_t index,
                            const KernelTable& kernels);

}  // namespace hexllm::cpu

// The CPU engine: runs the plans that cpu/lower.h makes, in fp32 arithmetic over weights as stored.
// A row's result does not depend on T, on the number of threads, on the instruction set, or on its neighbours.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/engine.h"
#include "base/status.h"

namespace hexllm::cpu {

// Instruction sets with kernels of their own. Stored nowhere.
enum class Isa : uint8_t { kScalar, kAvx2, kAvx512, kNeon };

struct EngineOptions {
  int threads = 0;           // 0 = one per physical core this process may use
  std::optional<Isa> isa;    // for tests; kUnsupported when this CPU lacks it. Unset = the best one
};

Result<std::unique_ptr<Engine>> CreateEngine(const EngineOptions& options);

}  // namespace hexllm::cpu

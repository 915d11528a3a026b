// The CPU engine: runs the plans that cpu/lower.h makes, in fp32 arithmetic
// over weights as stored. A row's result does not depend on T, on the number of
// threads, on the instruction set, or on its neighbours.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "backend/engine.h"
#include "base/status.h"

namespace hexllm::cpu {

// Instruction sets with kernels of their own. Stored nowhere.
enum class Isa : uint8_t {
  kScalar,
  kAvx2,
  kAvx512,
  kAvx512Vnni,  // kAvx512 and 8-bit dot products
  kNeon,
  kNeonDot  // kNeon and 8-bit dot products (Armv8.2)
};

std::string_view IsaName(Isa isa);  // "avx2"

// Some microseconds: many times what it costs to wake a thread of the pool.
inline constexpr int64_t kDefaultGrainWork = 1 << 16;

struct EngineOptions {
  int threads = 0;  // 0 = one per physical core this process may use
  std::optional<Isa> isa = {};  // for tests; unset = the best one
  // For tests: the least work (multiply-adds, moved floats) that is worth a
  // thread; 1 splits everything. Results do not depend on it.
  int64_t grain_work = kDefaultGrainWork;
};

// kUsage for a number of threads or work that makes no sense, kUnsupported when
// this CPU lacks `isa`. Graphs may outlive the engine that loaded them.
Result<std::unique_ptr<Engine>> CreateEngine(const EngineOptions& options);

}  // namespace hexllm::cpu

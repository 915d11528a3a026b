// The Hexagon engine: runs context binaries through the vendor's library, on
// x86 in its simulator. Loaded when asked for; the program runs without it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/engine.h"
#include "backend/htp/performance.h"
#include "base/status.h"

namespace hexllm::htp {

// Whether inputs, outputs and caches lie in memory that the device sees, too
// (rpc_memory.h), or are copied for each run.
enum class SharedBuffer : uint8_t {
  kAuto,  // on a device; its absence is an error
  kOn,
  kOff,
};

struct EngineOptions {
  std::string lib_dir;  // the folder of libQnnHtp.so and libQnnSystem.so
  SharedBuffer shared_buffer = SharedBuffer::kAuto;
  // Unset: burst on a device. Clocks are raised while the engine is busy.
  std::optional<Performance> performance = {};
};

// kEnvironment when the libraries are missing or cannot be loaded,
// kUnsupported for versions that are too old, and for shared memory and clocks
// in the simulator. Graphs may outlive the engine
// that loaded them. Graphs of one segment share its context. All rows of a step
// are computed, whatever StepRows says.
Result<std::unique_ptr<Engine>> CreateEngine(const EngineOptions& options);

}  // namespace hexllm::htp

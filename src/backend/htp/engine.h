// The Hexagon engine: runs context binaries through the vendor's library, on
// x86 in its simulator. Loaded when asked for; the program runs without it.
#pragma once

#include <memory>
#include <string>

#include "backend/engine.h"
#include "base/status.h"

namespace hexllm::htp {

struct EngineOptions {
  std::string lib_dir;  // the folder of libQnnHtp.so and libQnnSystem.so
};

// kEnvironment when the libraries are missing or cannot be loaded,
// kUnsupported for versions that are too old. Graphs may outlive the engine
// that loaded them. Graphs of one segment share its context. All rows of a step
// are computed, whatever StepRows says.
Result<std::unique_ptr<Engine>> CreateEngine(const EngineOptions& options);

}  // namespace hexllm::htp

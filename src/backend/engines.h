// The backends by name: how cli/ and compile/ make the engine that an artifact
// asks for.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backend/engine.h"
#include "base/status.h"

namespace hexllm {

// Options of all backends together.
struct BackendOptions {
  int threads = 0;               // on the CPU; 0 = one per physical core
  std::string qnn_lib_dir = {};  // htp: the folder of libQnnHtp.so
  // htp: one of HtpPerformanceNames() and SharedBufferNames(); empty = what
  // htp/engine.h says. kUsage for other names, and with another backend.
  std::string htp_performance = {};
  std::string shared_buffer = {};
};

std::span<const std::string_view> HtpPerformanceNames();
std::span<const std::string_view> SharedBufferNames();

// Names that CreateEngine takes.
std::span<const std::string_view> BackendNames();

// kUnsupported for a name that this build has no backend for. Errors of the
// backend: cpu/engine.h, htp/engine.h.
Result<std::unique_ptr<Engine>> CreateEngine(std::string_view backend,
                                             const BackendOptions& options);

}  // namespace hexllm

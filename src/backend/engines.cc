#include "backend/engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "backend/cpu/engine.h"
#include "backend/htp/engine.h"
#include "base/quote.h"

namespace hexllm {
namespace {

// In the order of htp::SharedBuffer.
constexpr std::string_view kSharedBufferNames[] = {"auto", "on", "off"};

Result<std::unique_ptr<Engine>> CreateCpu(const BackendOptions& options) {
  const bool performance = !options.htp_performance.empty();
  if (performance || !options.shared_buffer.empty()) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("{}: for graphs of the HTP only, these are for "
                    "the CPU; leave it out",
                    performance ? "--htp-performance" : "--shared-buffer")};
  }
  return cpu::CreateEngine({.threads = options.threads});
}

Result<std::unique_ptr<Engine>> CreateHtp(const BackendOptions& options) {
  htp::EngineOptions engine{.lib_dir = options.qnn_lib_dir};
  if (!options.htp_performance.empty()) {
    HX_ASSIGN_OR_RETURN(engine.performance,
                        htp::FindPerformance(options.htp_performance));
  }
  if (!options.shared_buffer.empty()) {
    const auto* name =
        std::ranges::find(kSharedBufferNames, options.shared_buffer);
    if (name == std::end(kSharedBufferNames)) {
      return Error{ErrorCode::kUsage,
                   fmt::format("--shared-buffer {}: expected {}",
                               Quoted(options.shared_buffer),
                               fmt::join(kSharedBufferNames, ", "))};
    }
    engine.shared_buffer =
        static_cast<htp::SharedBuffer>(name - kSharedBufferNames);
  }
  return htp::CreateEngine(engine);
}

constexpr std::string_view kNames[] = {"cpu", "htp"};
// In the order of kNames.
constexpr Result<std::unique_ptr<Engine>> (*kFactories[])(
    const BackendOptions&) = {CreateCpu, CreateHtp};
static_assert(std::size(kNames) == std::size(kFactories));

}  // namespace

std::span<const std::string_view> BackendNames() { return kNames; }

std::span<const std::string_view> HtpPerformanceNames() {
  return htp::PerformanceNames();
}

std::span<const std::string_view> SharedBufferNames() {
  return kSharedBufferNames;
}

Result<std::unique_ptr<Engine>> CreateEngine(std::string_view backend,
                                             const BackendOptions& options) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), backend);
  if (found != std::end(kNames)) {
    return kFactories[found - std::begin(kNames)](options);
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("this build has no backend {}; it has: {}",
                           Quoted(backend), fmt::join(kNames, ", "))};
}

}  // namespace hexllm

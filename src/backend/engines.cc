#include "backend/engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "backend/cpu/engine.h"
#include "backend/htp/engine.h"
#include "base/quote.h"

namespace hexllm {
namespace {

Result<std::unique_ptr<Engine>> CreateCpu(const BackendOptions& options) {
  return cpu::CreateEngine({.threads = options.threads});
}

Result<std::unique_ptr<Engine>> CreateHtp(const BackendOptions& options) {
  return htp::CreateEngine({.lib_dir = options.qnn_lib_dir});
}

constexpr std::string_view kNames[] = {"cpu", "htp"};
// In the order of kNames.
constexpr Result<std::unique_ptr<Engine>> (*kFactories[])(
    const BackendOptions&) = {CreateCpu, CreateHtp};
static_assert(std::size(kNames) == std::size(kFactories));

}  // namespace

std::span<const std::string_view> BackendNames() { return kNames; }

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

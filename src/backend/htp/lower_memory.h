// What the vendor's compiler needs for a context. Used by htp/lower_queue,
// which compiles as many at once as fit, and before the work, to refuse what
// cannot fit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "backend/htp/lower_contexts.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::htp {

// The most memory that the process of a context is expected to take. Measured
// with QAIRT 2.51 (docs/htp-backend.md): what follows from the weights and a
// tenth more.
uint64_t PeakBytes(const ir::Module& module, const ContextPlan& plan);

// kUnsupported when a context alone is expected to take more than
// `max_memory`.
Status CheckPeak(const ir::Module& module, std::span<const ContextPlan> plans,
                 uint64_t max_memory);

}  // namespace hexllm::htp

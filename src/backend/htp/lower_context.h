// Compiles the graphs of one context. Used by htp/lower, in a process of its
// own for each context (lower_queue.h).
#pragma once

#include <memory>

#include "backend/htp/lower.h"
#include "backend/htp/lower_contexts.h"
#include "backend/htp/qnn_session.h"
#include "base/child_process.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::htp {

// The library, ready for the chip of `options`. Errors as Lower's.
Result<std::shared_ptr<const QnnSession>> OpenSession(
    const LowerOptions& options);

// What CompileContext works on; borrowed.
struct ContextJob {
  const ir::Module& module;
  const ContextPlan& plan;
  const LowerOptions& options;
};

// Compiles in this process, with a library that it opens, and gives `channel` a
// step for each graph, and the binary. What the library does hangs on what it
// did before: the same bytes come of the same job in a new process only.
Status CompileContext(const ContextJob& job, const ChildChannel& channel);

}  // namespace hexllm::htp

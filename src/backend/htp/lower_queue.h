// Makes the contexts of a module: takes them from the cache where they are in
// it, and compiles the others, each in a process of its own, as many at once as
// the machine bears. Used by htp/lower.
//
// A process for each, since the vendor's library numbers tensors through the
// life of a process, and the numbers are in the binary: only so is a context
// the same whether others were compiled before it or found in the cache. It
// also gives all its memory back, and when it crashes it is an error.
#pragma once

#include <functional>
#include <span>

#include "backend/htp/lower.h"
#include "backend/htp/lower_contexts.h"
#include "base/progress.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::htp {

// Borrowed.
struct QueueJob {
  const ir::Module& module;
  std::span<const ContextPlan> plans;
  const LowerOptions& options;
  ProgressSink& progress;
};

// Is given the contexts one by one, in the order of the plans.
using TakeContext = std::function<Status(const ContextPlan& plan, ByteSpan)>;

// The first error of a context, with its name, ends all. Errors of Lower.
Status MakeContexts(const QueueJob& job, const TakeContext& take);

}  // namespace hexllm::htp

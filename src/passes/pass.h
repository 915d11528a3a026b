// A pass: one rewrite of a module. Each has a header that shows the IR before
// and after, a row in passes/pipeline.cc, and a golden pair
// tests/golden/passes/<name>_{before,after}.ir.
#pragma once

#include <string_view>

#include "base/status.h"
#include "ir/graph.h"

namespace hexllm {

// Takes a verified module and leaves a verified module that computes the same.
// An error means that the module cannot be compiled (the message says why), not
// that there was nothing to rewrite.
using PassFn = Status (*)(ir::Module& module);

struct Pass {
  std::string_view name;  // as in file names of dumps and goldens
  PassFn run;
};

}  // namespace hexllm

// dead_code: drops nodes that no output needs, and the values that go with
// them; renumbers the rest.
//
// before
//   %1 = silu(%0) "unused" : f32[1,4]
//   %2 = scale(%0) {factor=2} "x" : f32[1,4]
//   out %2 hidden_out
// after
//   %1 = scale(%0) {factor=2} "x" : f32[1,4]
//   out %1 hidden_out
//
// Graph inputs stay, used or not, and so do the constants of the module (they
// are views; other graphs may read them).
#pragma once

#include "passes/pass.h"

namespace hexllm {

Status RemoveDeadCode(ir::Module& module);

}  // namespace hexllm

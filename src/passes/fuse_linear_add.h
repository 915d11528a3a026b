// fuse_linear_add: a projection and the residual sum behind it become one op,
// which adds while the sum is in registers.
//
// before
//   %2 = linear(%0, @w0) "o_proj" : f32[1,8]
//   %3 = add(%1, %2) "residual" : f32[1,8]
// after
//   %2 = linear_add(%0, @w0, %1) "residual" : f32[1,8]
//
// The projection must have no other reader. When both sides are projections,
// the later one takes the sum. A sum of different shapes stays.
#pragma once

#include "passes/pass.h"

namespace hexllm {

Status FuseLinearAdd(ir::Module& module);

}  // namespace hexllm

// fuse_gated_mul: the activation and the product of a gated MLP become one op,
// one pass over memory instead of two.
//
// before
//   %2 = silu(%0) "act" : f32[1,8]
//   %3 = mul(%2, %1) "gated" : f32[1,8]
// after
//   %2 = gated_mul(%0, %1) {activation=0} "gated" : f32[1,8]
//
// Activations: silu, gelu (both forms); on either side of the mul. The
// activation must have no other reader.
#pragma once

#include "passes/pass.h"

namespace hexllm {

Status FuseGatedMul(ir::Module& module);

}  // namespace hexllm

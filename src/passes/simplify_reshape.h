// simplify_reshape: drops reshapes and transposes that move nothing, and joins
// chains of them.
//
// before, with %0 : f32[1,9,64]
//   %1 = transpose(%0) {perm=[1,0,2]} "a" : f32[9,1,64]
//   %2 = reshape(%1) {shape=[576]} "b" : f32[576]
//   %3 = reshape(%2) {shape=[1,576]} "c" : f32[1,576]
// after
//   %1 = reshape(%0) {shape=[1,576]} "c" : f32[1,576]
//
// Rules: a transpose that moves only axes of size 1 is a reshape (every head
// split of a kv graph); reshape of reshape and transpose of transpose are one;
// a reshape to the same shape and a transpose that keeps all axes are nothing.
#pragma once

#include "passes/pass.h"

namespace hexllm {

Status SimplifyReshape(ir::Module& module);

}  // namespace hexllm

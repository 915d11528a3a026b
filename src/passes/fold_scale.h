// fold_scale: merges scales of scales and drops scales by 1.
//
// before
//   %1 = scale(%0) {factor=0.5} "a" : f32[1,4]
//   %2 = scale(%1) {factor=4} "b" : f32[1,4]
//   %3 = scale(%2) {factor=1} "c" : f32[1,4]
//   out %3 hidden_out
// after
//   %1 = scale(%0) {factor=2} "c" : f32[1,4]
//   out %1 hidden_out
//
// Factors multiply in double; the result may differ from two roundings in the
// last bit.
#pragma once

#include "passes/pass.h"

namespace hexllm {

Status FoldScale(ir::Module& module);

}  // namespace hexllm

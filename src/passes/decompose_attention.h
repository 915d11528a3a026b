// decompose_attention: attention becomes matrix products, a sum with the mask
// and a softmax, for targets without an attention of their own.
//
// before, with T=2, C=5, H=4, G=2, D=8
//   %6 = attention(%0, %1, %2, %3, %4, %5) {scale=0.5, softcap=0} "a.attention"
//       : f32[2,4,8]
// after
//   %6 = transpose(%0) {perm=[1,0,2]} "a.query" : f32[4,2,8]
//   %7 = reshape(%6) {shape=[2,4,8]} "a.query" : f32[2,4,8]
//   %8 = concat(%1, %3) {axis=2} "a.keys" : f32[2,8,5]
//   %9 = matmul(%7, %8) {scale=0.5} "a.scores" : f32[2,4,5]
//   %10 = reshape(%9) {shape=[2,2,2,5]} "a.scores" : f32[2,2,2,5]
//   %11 = add(%10, %5) "a.masked_scores" : f32[2,2,2,5]
//   %12 = softmax(%11) "a.probs" : f32[2,2,2,5]
//   %13 = reshape(%12) {shape=[2,4,5]} "a.probs" : f32[2,4,5]
//   %14 = concat(%2, %4) {axis=1} "a.values" : f32[2,5,8]
//   %15 = matmul(%13, %14) {scale=1} "a.attention" : f32[2,4,8]
//   %16 = reshape(%15) {shape=[4,2,8]} "a.attention" : f32[4,2,8]
//   %17 = transpose(%16) {perm=[1,0,2]} "a.attention" : f32[2,4,8]
//
// The R = H/G query heads of a KV head are rows of one matrix. With a softcap,
// softcap "a.capped_scores" stands behind the scores. Every value that is
// computed, not moved, has a name of its own: a pass over encodings finds it by
// that. Results differ from attention's in the last bits, as scores and weights
// are rounded to f32 in between; hidden columns must be finite, for their
// weight is 0 and not left out.
#pragma once

#include "passes/pass.h"

namespace hexllm {

Status DecomposeAttention(ir::Module& module);

}  // namespace hexllm

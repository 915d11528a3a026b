// convert_kv: what is stored in the KV cache passes a convert, whose output can
// have the cache's own encoding. Attention reads the converted values too: a
// new column counts the same as it will when it comes from the cache.
//
// before, with T=2, G=1, D=8
//   %3 = rope(%2, %0, %1) "a.k_rope" : f32[2,1,8]
//   %4 = transpose(%3) {perm=[1,2,0]} "a.k_new" : f32[1,8,2]
//   %5 = concat(%9, %4) {axis=2} "a.keys" : f32[1,8,5]
//   out %4 k_out[0]
// after
//   %3 = rope(%2, %0, %1) "a.k_rope" : f32[2,1,8]
//   %4 = convert(%3) "a.k_cache" : f32[2,1,8]
//   %5 = transpose(%4) {perm=[1,2,0]} "a.k_new" : f32[1,8,2]
//   %6 = concat(%9, %5) {axis=2} "a.keys" : f32[1,8,5]
//   out %5 k_out[0]
//
// The same for v_out, "a.v_cache". The convert stands where the heads [T,G,D]
// are made: before all transposes, behind the reshape of a projection. Its name
// is that of the attention that reads the layer's k_in (v_in), whole or
// decomposed, in any graph of the module; else that of the output. Taps keep
// showing the value before.
#pragma once

#include "passes/pass.h"

namespace hexllm {

Status ConvertKv(ir::Module& module);

}  // namespace hexllm

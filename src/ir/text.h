// The text form of the IR: the language of golden tests and of --dump-ir.
//
//   // a comment
//   const @w0 "model.layers.0.mlp.up_proj.weight" : q4_1[2,32]
//   encoding @w0 i8 bits=4 axis=0 block=16 scales=[1,2]
//   block_scales=[9,16,16,1] graph kv kind=kv T=1 C=8 {
//     in %0 hidden_in : f32[1,32]
//     %1 = scale(%0) {factor=0.5} "model.scaled" : f32[1,32]
//     encoding %1 u16 scales=[0.01] zero_points=[32768]
//     %2 = linear(%1, @w0) "model.layers.0.mlp.up_proj" : f32[1,2]
//     out %2 logits
//     out %2 tap["model.layers.0.mlp.up_proj"]
//   }
//
// One statement a line. An encoding follows what it belongs to; fields that
// have their default value (ir/types.h) are left out, the others stand in the
// order bits, axis, block, scales, zero_points, block_scales. Print and Parse
// are inverse: values are numbered in the order of their definition, constants
// left out, so that equal graphs print equally. Names may hold any bytes: \",
// \\ and \xNN stand for what is not printable. A graph input prints its name
// only when it is not its role, a graph its shard when it is not 0. Constant
// data is not printed; a parsed constant has deterministic pseudo-random data
// made from its name (ir/pseudo_random.h), so that parsed graphs run.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::ir {

// `module` must be verified.
std::string Print(const Module& module);
// kBadInput with the line number. The result is verified.
Result<Module> Parse(std::string_view text);

}  // namespace hexllm::ir

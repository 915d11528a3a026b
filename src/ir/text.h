// The text form of the IR: the language of golden tests and of --dump-ir. Print
// and Parse are inverse (constant data is not printed; a parsed constant has
// deterministic pseudo-random data made from its name, so that parsed graphs
// run).
//
//   const @w0 "model.layers.0.mlp.up_proj.weight" : q4_1[1536,576]
//   graph kv kind=kv T=1 C=8 {
//     in %0 token : i32[1]
//     %2 = linear(%1, @w0) "model.layers.0.mlp.up_proj" : f32[1,1536]
//     out %2 logits
//   }
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::ir {

std::string Print(const Module& module);
// kBadInput with the line number. The result is verified.
Result<Module> Parse(std::string_view text);

}  // namespace hexllm::ir

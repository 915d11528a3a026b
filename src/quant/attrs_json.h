// The encodings of a module as a quant-attrs JSON file, for people and other
// tools to read. Not read back: artifacts carry their encodings themselves.
#pragma once

#include <string>

#include "ir/graph.h"

namespace hexllm::quant {

// By name, indented; values of all graphs (the same name means the same value)
// and graph inputs under "values", constants under "weights":
//   {"version": 1,
//    "values": {"model.embed_tokens": {"dtype": "u16", "bits": 16,
//       "scale": 0.01, "zero_point": 300, "min": -3.0, "max": 652.35}},
//    "weights": {"lm_head.weight": {"dtype": "i8", "bits": 4, "axis": 0,
//       "block": 32, "scales": [0.1, 0.2], "min": -22.4, "max": 22.4}}}
// min and max are what the least and greatest code stand for (of any channel,
// and of the greatest block factor). The factors of blocks are left out. Values
// and weights without encoding are not listed, data movement neither.
std::string EncodingsToJson(const ir::Module& module);

}  // namespace hexllm::quant

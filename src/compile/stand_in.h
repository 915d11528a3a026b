// Ranges for graphs that are compiled and never run: what programs the vendor's
// compiler makes of them, and how long it thinks that these take, does not hang
// on the numbers. Used for estimates. Not for artifacts: what is computed with
// such ranges is of no use.
#pragma once

#include <set>

#include "ir/graph.h"
#include "quant/assign.h"

namespace hexllm {

// In the place of a calibration.
struct StandIns {
  // Layers whose K keeps the activations' width where kv_bits is 8: the one
  // choice of calibration that changes a program.
  std::set<int> wide_k_layers = {};
};

// A range for every value that AssignEncodings asks for. They differ from value
// to value and have no zero point in the middle, as real ones: equal encodings
// would make conversions free that cost something.
quant::Ranges StandInRanges(const ir::Module& module);

}  // namespace hexllm

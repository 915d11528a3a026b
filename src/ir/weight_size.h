// How large a model's weights are at the widths that their encodings give them:
// the size that recipes are compared by, and what a context must hold. Used by
// compile/ and lowerings.
#pragma once

#include <cstdint>
#include <span>

#include "ir/graph.h"

namespace hexllm::ir {

// Bytes of all constants that these graphs of `module` read, each once,
// whatever a backend's padding: codes of their bits, scales of 4 bytes, block
// factors of 1 byte; a table whose lookups are rounded to codes counts with
// these; the rest as stored.
uint64_t WeightBytes(const Module& module, std::span<const size_t> graphs);
// Of all graphs.
uint64_t WeightBytes(const Module& module);

// Bytes of a tensor of `shape` in codes of `encoding`, counted the same way.
uint64_t EncodedBytes(const Encoding& encoding, const Shape& shape);

}  // namespace hexllm::ir

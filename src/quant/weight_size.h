// How large a model's weights are at the widths that their encodings give them:
// the size that recipes are compared by. Used by compile/.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace hexllm::quant {

// Bytes of all constants that graphs of `module` read, each once, whatever a
// backend's padding: codes of their bits, scales of 4 bytes, block factors of 1
// byte; a table whose lookups are rounded to codes counts with these; the rest
// as stored.
uint64_t WeightBytes(const ir::Module& module);

}  // namespace hexllm::quant

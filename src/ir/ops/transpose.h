// What a transpose does to the order of elements. Used by passes and lowerings.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/types.h"

namespace hexllm::ir {

// True when transposing `shape` with `perm` (as the op has it) leaves the
// elements in their order: the axes longer than 1 keep theirs.
bool KeepsOrder(const Shape& shape, const std::vector<int64_t>& perm);

}  // namespace hexllm::ir

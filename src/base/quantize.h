// Rounds rows of floats to GGUF block types: the reverse of base/dequantize.h.
// Used by lowering (weights of the CPU's own schemes) and by the interpreter.
#pragma once

#include <span>

#include "base/bytes.h"
#include "base/dtype.h"

namespace hexllm {

// True for types that QuantizeRow takes: q4_1 and q8_0.
bool IsQuantizable(DType dtype);

// Writes the blocks of `values` (a whole number of them, finite) to `out`,
// which has exactly their size (checked).
void QuantizeRow(DType dtype, std::span<const float> values,
                 std::span<std::byte> out);

}  // namespace hexllm

// Widens rows of any floating or GGUF block type to float: the one scalar
// definition of what stored weights mean. Used by the interpreter, by lowering,
// and as the reference twin of the CPU kernels. Not tuned for speed. Block
// layouts: GGUF specification and ggml's quantization formats (Q4_0 ... Q6_K).
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/dtype.h"

namespace hexllm {

// True for types that DequantizeRow takes: f32, f16, bf16, f64 and all block
// types.
bool IsFloatLike(DType dtype);

// Writes out.size() floats. `out.size()` must be a whole number of blocks and
// `bytes` exactly their storage (checked). Block types: value = d * q (+ m),
// each product and sum rounded to f32 once, as ggml's reference code does.
void DequantizeRow(DType dtype, ByteSpan bytes, std::span<float> out);

}  // namespace hexllm

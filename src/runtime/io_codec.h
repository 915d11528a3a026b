// Floats to and from the elements of a graph's inputs and outputs: plain float
// types, or integers with a per-tensor scale and zero point. Used for RoPE rows
// and logits. Not for weights (base/dequantize.h) nor for masks, which are bit
// patterns.
#pragma once

#include <cstddef>
#include <span>

#include "artifact/manifest.h"

namespace hexllm {

// Writes in.size() elements to `out`, which has exactly their size. Encoded:
// code = round_half_even(value / scale) + zero_point, clamped to the type.
// `spec` is f32, f16 or bf16 without an encoding, or i8, u8, i16 or u16 with
// one (as the artifact's reader has checked). Does not allocate.
void EncodeFloats(std::span<const float> in, const artifact::IoSpec& spec,
                  std::span<std::byte> out);

// The reverse; value = scale * (code - zero_point).
void DecodeFloats(std::span<const std::byte> in, const artifact::IoSpec& spec,
                  std::span<float> out);

// Bytes of one element. `dtype` must not be a block type (checked).
size_t ElementBytes(DType dtype);

// True when the two have the same dtype, shape and encoding, so that one
// buffer serves both.
bool SameStorage(const artifact::IoSpec& a, const artifact::IoSpec& b);

}  // namespace hexllm

// How the codes of activations lie in scratch memory: written by kQuantizeRows
// and kRowCodes, read by the matmuls that follow. The sizes are shared by
// cpu/lower*, which reserves the memory, and cpu/engine*, which checks it.
//
//   quantized rows   codes i8 [R,K] | scales f32 [R,K/32] | sums i32 [R,K/32]
//   row codes        codes i16 [R,D] | row sums i64 [R]
//
// Each part starts at a multiple of 64 bytes. D = PaddedDepth(K). Row codes go
// from 0 to 255 or 65535 and lie in memory less CodeCentre, with zeros beyond
// K; a row's sum is that of what lies there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"

namespace hexllm::cpu {

// Bytes of R quantized rows of K elements (a multiple of 32).
int64_t QuantizedBytes(int64_t rows, int64_t k);
// The parts of `memory`, which holds QuantizedBytes(rows, k); from row
// `first` on.
QuantizedRows QuantizedAt(std::byte* memory, int64_t rows, int64_t k,
                          int64_t first);

// Bytes of R rows of codes of K elements.
int64_t RowCodesBytes(int64_t rows, int64_t k);

// Where the parts of `memory`, which holds RowCodesBytes(rows, k), are.
struct RowCodes {
  int16_t* codes;
  int64_t stride;  // codes between rows
  int64_t* sums;
};
RowCodes RowCodesAt(std::byte* memory, int64_t rows, int64_t k);

// What is taken off codes from 0 to `most`, 255 or 65535.
constexpr int32_t CodeCentre(int32_t most) { return (most + 1) / 2; }

}  // namespace hexllm::cpu

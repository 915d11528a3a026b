// How the codes of activations lie in scratch memory: written by kQuantizeRows
// and kCodePlanes, read by the matmuls that follow. The sizes are shared by
// cpu/lower*, which reserves the memory, and cpu/engine*, which checks it.
//
//   quantized rows   codes i8 [R,K] | scales f32 [R,K/32] | sums i32 [R,K/32]
//   code planes      plane 0 i8 [R,D] | .. | row sums i64 [R]
//
// Each part starts at a multiple of 64 bytes. D = PaddedDepth(K). A code c of 0
// to 65535 has two planes: high byte - 128, low byte - 128; one of 0 to 255 has
// one: c - 128. A row's sum is that of c - PlaneOffset.
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

// Bytes of the planes of R rows of K elements.
int64_t PlaneBytes(int64_t rows, int64_t k, int64_t planes);

// Where the planes of `memory`, which holds PlaneBytes(rows, k, planes), are.
struct CodePlanes {
  int8_t* codes;   // of plane 0
  int64_t stride;  // codes between rows
  int64_t plane;   // codes between planes
  int64_t* sums;
};
CodePlanes PlanesAt(std::byte* memory, int64_t rows, int64_t k, int64_t planes);

// What the planes stand for, less than the code: code = PlaneOffset + 256 *
// plane 0 + plane 1 (or + plane 0).
constexpr int64_t PlaneOffset(int64_t planes) {
  return planes == 2 ? 128 * 256 + 128 : 128;
}

}  // namespace hexllm::cpu

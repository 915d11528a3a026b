// Packed weights of the integer kernels (matmul_q, code_matmul): the same bytes
// for every instruction set, so that an artifact runs anywhere. Written by
// lowering; read by kernels and, row by row, by embedding lookups. Plain C++,
// not fast.
//
// The N rows are cut into panels of 16, the last one padded with zero rows. A
// panel holds its factors, then, from the next multiple of 64 bytes on, its
// codes. K is cut into blocks of 32; factors and codes are in block order:
//
//   panel | factors, block 0 | factors, block 1 | .. | codes, block 0 | ..
//
//   factors of a block   q4_1: d[16] then m[16], as f16 (64 bytes)
//                        q8_0: d[16], as f16 (32 bytes)
//                        i8:   none
//   codes of a block     q8_0, i8: 8 groups of 64 bytes; group g has the four
//                        elements k = 4 g .. 4 g + 3 of the 16 rows:
//
//                        row 0          row 1               row 15
//                        k0 k1 k2 k3    k0 k1 k2 k3    ..   k0 k1 k2 k3
//
//                        A byte is the signed code + 128. (Instructions
//                        multiply unsigned by signed bytes; kernels take 128 *
//                        the sum of the activations off again, or flip the top
//                        bit.) q4_1: 4 pairs of groups of 64 bytes in the same
//                        order; group 2 p in the low nibbles of pair p, group 2
//                        p + 1 in the high nibbles. A nibble is the code, 0
//                        to 15.
#pragma once

#include <cstdint>
#include <span>

#include "backend/cpu/kernels/packed_layout.h"
#include "base/bytes.h"
#include "base/dtype.h"

namespace hexllm::cpu {

// K rounded up to whole blocks of 32: the width of the rows of codes that
// code_matmul takes.
int64_t PaddedDepth(int64_t k);

// True for the types that have panels: q4_1, q8_0 and i8.
bool IsPackable(DType dtype);

// Bytes of one panel of rows of K elements, a multiple of 64. IsPackable types
// only; K is a multiple of 32 for q4_1 and q8_0 (both checked).
int64_t PackedPanelBytes(DType dtype, int64_t k);
// Bytes of N packed rows: whole panels.
int64_t PackedBytes(DType dtype, int64_t n, int64_t k);

// Packs `rows` (1 to 16 rows of K elements as stored: GGUF blocks, or signed
// bytes; without gaps) into one panel. The missing rows become zeros, as do the
// elements of i8 beyond K. rows.size() is a whole number of rows and
// panel.size() is PackedPanelBytes (both checked).
void PackPanel(DType dtype, int64_t k, ByteSpan rows,
               std::span<std::byte> panel);

// Writes row `row` (0 to 15) of a panel as it was stored, the reverse of
// PackPanel. out.size() is the size of a stored row (checked).
void UnpackRow(DType dtype, int64_t k, ByteSpan panel, int64_t row,
               std::span<std::byte> out);

}  // namespace hexllm::cpu

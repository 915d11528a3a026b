// The kernels of the CPU engine: one table per instruction set, all with the
// same bits.
//
// Reduction order (the contract that makes kv == hybrid == lookahead == any
// thread count == any CPU exact):
//
// Dot products over K (matmul): 16 lanes. Lane l sums elements k = l, l+16, ...
// in order with fused multiply-add, starting from +0. Then the lanes are added
// in a fixed tree: 8 pairs (l, l+8), 4 (l, l+4), 2 (l, l+2), 1 (l, l+1). A tail
// shorter than 16 behaves as if padded with zeros (weights and activations).
//
// Attention works on the visible columns only, numbered 0.. in column order
// (past first, then new). Scores: fused multiply-add over d = 0.. for each
// column. Maximum, then exp(score - max); the sum of exps in 16 lanes by column
// number with the same tree. Outputs: fused multiply-add over columns in order,
// divided by the sum at the end.
//
// Linears whose activations are rounded at run time (matmul_q): one lane per
// output, blocks of K in order; see MatMulQArgs. Matrix products in double
// (batch_matmul): over k in order, each product exact.
//
// exp, tanh, sigmoid and erf are our own polynomials (kernels/math.h), the same
// operations in every instruction set.
//
// Hidden columns contribute nothing; so where a key lies (cache slot or new
// column) does not change a bit.
//
// Used by cpu/engine. Pointers are valid and sizes checked when the plan is
// loaded; kernels cannot fail. Bits are compared as numbers: any NaN equals any
// NaN. Files kernels/<kernel>_<isa>.cc are compiled with that ISA's flags. They
// include C headers and headers of this folder only, which keep everything in
// anonymous namespaces: the linker must never take an AVX copy of shared inline
// code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/packed_layout.h"

namespace hexllm::cpu {

enum class Isa : uint8_t;

// out[r, n] = sum_k x[r, k] * w[n, k] (+ bias[n]) (+ residual[r, n]) for n in
// [n_begin, n_end), all rows. The sum is rounded, then bias, then residual are
// added.
struct MatMulArgs {
  const float* x;      // [rows, K]
  int64_t x_stride;    // floats between rows
  const std::byte* w;  // [N, K] of the kernel's weight dtype
  int64_t w_row_bytes;
  const float* bias;      // [N], or null
  const float* residual;  // [rows, N] with out_stride, or null; may be `out`
  float* out;             // [rows, N]
  int64_t out_stride;
  int64_t rows;
  int64_t k;
  int64_t n_begin;
  int64_t n_end;
  float* scratch;  // MatMulScratchFloats(k) floats, 64-byte aligned, one per
                   // thread
};
using MatMulFn = void (*)(const MatMulArgs&);
// Floats of scratch that every matmul kernel may use for inner size k (decoded
// weight rows).
int64_t MatMulScratchFloats(int64_t k);

// out[r, :] = x[r, :] / sqrt(mean(x[r, :]^2) + eps) * (weight + weight_offset);
// mean in the 16-lane order.
struct RmsNormArgs {
  const float* x;
  const float* weight;  // [width]
  float* out;           // may be x
  int64_t rows;
  int64_t width;  // rows are contiguous
  float eps;
  float weight_offset;
};

// out[r, :] = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight + bias
// of row r; means in the 16-lane order.
struct LayerNormArgs {
  const float* x;
  const float* weight;  // [width]
  const float* bias;    // [width]
  float* out;           // may be x
  int64_t rows;
  int64_t width;  // rows are contiguous
  float eps;
};

// x[r, h, :] with pairs (i, i + half) rotated by cos[r, i], sin[r, i], i <
// half; elements from 2*half on are copied.
struct RopeArgs {
  const float* x;    // [rows, heads, head_dim]
  const float* cos;  // [rows, half]
  const float* sin;
  float* out;  // may be x
  int64_t rows;
  int64_t heads;
  int64_t head_dim;
  int64_t half;
};

// One (row, kv head) of attention: the `group` query heads that share KV head
// g. See the reduction order above.
struct AttentionArgs {
  const float* q;       // [group, head_dim] of this row
  const float* k_past;  // [D, P] of this KV head: columns contiguous
  const float* v_past;  // [P, D]
  const float* k_new;   // [D, T]
  const float* v_new;   // [T, D]
  const float* mask;    // [P + T] of this row: hidden where -infinity, else 0
  float* out;           // [group, head_dim]
  int64_t group;
  int64_t head_dim;
  int64_t past;  // P: also the stride of k_past
  int64_t step;  // T: also the stride of k_new
  float scale;
  float softcap;   // 0 = none; cap * tanh(score / cap), before the mask
  float* scratch;  // AttentionScratchFloats floats, 64-byte aligned, one per
                   // thread
};
int64_t AttentionScratchFloats(int64_t group, int64_t past, int64_t step);

enum class Activation : uint8_t { kSilu, kGeluTanh, kGeluErf };

// --- Rounded numbers. Packed weights are drawn in packed.h.

// Elements along K that share a scale.
inline constexpr int64_t kQuantBlock = 32;

// Rows of 8-bit codes, one scale per block of kQuantBlock: x = code * scale.
struct QuantizedRows {
  int8_t* codes;  // [rows, K], -127 to 127
  float* scales;  // [rows, K / 32]
  int32_t* sums;  // [rows, K / 32]: of the codes of a block
};

// Rounds rows of floats, per block x of 32:
//   amax = the largest |x|, NaN where one is NaN; scale = amax / 127
//   inverse = amax == 0 ? 0 : 127 / amax
//   code = rint(x * inverse), half to even, clamped to +-127; NaN becomes 0
// each operation rounded to f32. So a NaN or an infinity makes all that is
// computed from its block NaN, and an output is finite only by finite inputs.
struct QuantizeRowsArgs {
  const float* x;    // [rows, K]
  int64_t x_stride;  // floats between rows
  int64_t rows;
  int64_t k;  // a multiple of 32
  QuantizedRows out;
};

// out[r, n] = x[r, :] . w[n, :] (+ bias[n]) (+ residual[r, n]) for n in
// [n_begin, n_end), all rows. From +0, for the blocks b of 32 along K in order:
//   dot = the exact sum of x code * w code
//   acc = fma(float(dot), d * scale, acc)                        d: q4_1, q8_0
//   acc = fma(m, scale * float(sum), acc)                        m: q4_1
// with d * scale and scale * float(sum) rounded. Then bias, then residual are
// added, each rounded.
struct MatMulQArgs {
  QuantizedRows x;     // [rows, K], read only
  const std::byte* w;  // panels of the kernel's weight dtype (packed.h), from
                       // row 0 on; 64-byte aligned
  const float* bias;   // [N], or null
  const float* residual;  // [rows, N] with out_stride, or null; may be `out`
  float* out;             // [rows, N]
  int64_t out_stride;
  int64_t rows;
  int64_t k;        // a multiple of 32
  int64_t n_begin;  // a multiple of kPackedRows
  int64_t n_end;    // a multiple of kPackedRows, or N
};
using MatMulQFn = void (*)(const MatMulQArgs&);

// What makes outputs of the exact sums of a panel, per output. `offsets` and
// `rest` are whole numbers, `per_place` powers of 2.
struct PanelTerms {
  double offsets[kPackedRows];
  double per_place[kPackedRows];  // read when sums drop what is below a place
  double rest[kPackedRows];       // likewise
  double factors[kPackedRows];
};

// One panel of the products of codes: for its outputs j,
//   steps = sum_k x[r, k] * w[j, k] + offsets[j]
//   out[r, j] = float(steps * factors[j])
// or, when it `drops`,
//   out[r, j] = float((floor(steps * per_place[j]) + rest[j]) * factors[j])
// The first line is exact: of whole numbers below 2^53. Only the product with
// the factor is rounded, to double, then to float.
struct CodeMatMulArgs {
  const int16_t* x;       // [rows, PaddedDepth(K)]; zeros beyond K
  int64_t x_stride;       // codes between rows
  const int64_t* x_sums;  // [rows]: of a row's codes
  const std::byte* w;     // an i8 panel (packed.h); 64-byte aligned
  const std::byte* low;   // or null. Else w is 256 * (panel w) + (panel low) +
                          // 128
  const PanelTerms* terms;
  bool drops;  // what is below a place
  float* out;  // [rows, outputs]
  int64_t out_stride;
  int64_t rows;
  int64_t k;        // at most 65536
  int64_t outputs;  // 1 to kPackedRows
};

// Rounds to a grid of codes, in f32 (ir/encode.h):
//   code = clamp(rint(x / scale) + zero_point, least, most), half to even
//   out = (code - zero_point) * scale; NaN becomes 0
struct RoundCodesArgs {
  const float* x;
  float* out;  // may be x
  int64_t n;
  float scale;  // positive, normal
  int32_t zero_point;
  int32_t least;  // least, most and zero_point: magnitudes below 2^24
  int32_t most;
};

// out[r, :] = exp(x - max) / sum over the row. -infinity gives 0, also where a
// row has nothing else. The sum is exact and so does not depend on where a
// column stands: terms are rounded to multiples of 2^-36 and added in double
// (up to 2^17 columns).
struct SoftmaxArgs {
  const float* x;  // [rows, width], contiguous
  float* out;      // may be x
  int64_t rows;
  int64_t width;
};

// Softmax of codes as the HTP computes it: base/chip_softmax.h, row by row.
struct ChipSoftmaxArgs {
  const float* x;  // [rows, width], contiguous: codes * scale
  float* out;      // may be x
  int64_t rows;
  int64_t width;  // up to 2^20
  float scale;    // positive, normal
};

// out[m, n] = float(scale * sum_k a[m, k] * b[k, n]): the sum over k in order
// from +0, in double, where every product is exact. With grid steps the sum is
// of integers: rint(a * (1 / a_step)) and rint(b * (1 / b_step)), code - zero
// point of numbers that lie on a grid, whose sum is exact, and the factor is
// a_step * b_step * scale in double. One matrix of a batch per call.
//
// With `zeros` the sums lose what is below `place`, a power of 2, as
// ir/ops/matmul.cc says: zeros[n] is what the zero point of a adds to column n,
// modulo place, and
//   out = float((floor((sum + zeros[n]) / place) - (zeros[n] >= place / 2)) *
//               place * factor)
struct BatchMatMulArgs {
  const float* a;  // [M, K]
  int64_t a_stride;
  const float* b;  // [K, N]
  int64_t b_stride;
  float* out;  // [M, N]
  int64_t out_stride;
  int64_t m;
  int64_t k;
  int64_t n;
  float scale;
  float a_step;  // both 0: the numbers as they are; else both positive, normal
  float b_step;
  const double* zeros = nullptr;  // [N] whole numbers from 0 to place - 1
  double place = 1;
  double* scratch;  // kBatchMatMulScratch doubles, 64-byte aligned, one per
                    // thread
};
inline constexpr int64_t kBatchMatMulScratch = 40 * 1024;

// Element-wise over n contiguous floats; out may be an input.
struct KernelTable {
  Isa isa;
  // By weight dtype (index = DType); null where the dtype is not a weight type.
  MatMulFn matmul[32];
  void (*rms_norm)(const RmsNormArgs&);
  void (*layer_norm)(const LayerNormArgs&);
  void (*rope)(const RopeArgs&);
  void (*attention)(const AttentionArgs&);
  void (*add)(const float* a, const float* b, float* out, int64_t n);
  void (*mul)(const float* a, const float* b, float* out, int64_t n);
  void (*scale)(const float* x, float factor, float* out, int64_t n);
  void (*activate)(const float* x, float* out, int64_t n,
                   Activation activation);
  void (*gated_mul)(const float* gate, const float* up, float* out, int64_t n,
                    Activation activation);
  void (*softcap)(const float* x, float cap, float* out, int64_t n);
  // By weight dtype: kQ4_1 and kQ8_0; null elsewhere.
  MatMulQFn matmul_q[32];
  void (*quantize_rows)(const QuantizeRowsArgs&);
  void (*code_matmul)(const CodeMatMulArgs&);
  void (*round_codes)(const RoundCodesArgs&);
  void (*round_f16)(const float* x, float* out, int64_t n);
  void (*softmax)(const SoftmaxArgs&);
  void (*chip_softmax)(const ChipSoftmaxArgs&);
  void (*batch_matmul)(const BatchMatMulArgs&);
};

// The table of `isa`, or null when it is not built for this architecture or
// this CPU cannot run it.
const KernelTable* FindKernels(Isa isa);
// The fastest table that this CPU runs; there is always kScalar.
const KernelTable& BestKernels();

}  // namespace hexllm::cpu

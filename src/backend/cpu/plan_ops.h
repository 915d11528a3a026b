// The instructions of a CPU plan: what each reads, writes and is told. The
// contract between cpu/lower* and cpu/engine*. Stored in plans: append, never
// reorder.
//
// Activations are f32, row-major: numbers on the grid of their encoding where
// the graph gives them one. Only graph inputs and outputs are in codes. An
// instruction works on `rows` rows that start at row `first_row` of the step
// (Instruction in plan.h): rows of the step that are padding are skipped.
// first_row == T marks memory that is not laid out by step rows; it is always
// computed whole.
#pragma once

#include <cstdint>

namespace hexllm::cpu {

// Axes: R rows of the instruction, T step tokens, C context tokens, P = C - T
// past columns, H query heads, G KV heads, D head dim, M, K, N, V widths.
// `half` is half the rotary dims.
enum class PlanOp : uint16_t {
  // in token[R] i32 (a graph input), weight[V,M] (rows, or q4_1 and q8_0
  // panels); out [R,M]
  kEmbed,
  // in x[R,K], weight[N,K], bias[1,N]?, residual[R,N]?; out [R,N] (may be the
  // residual)
  kMatMul,
  // in x[R,n,M], weight[1,M] f32; out same; ints {n, M}; floats {eps,
  // weight_offset}
  kRmsNorm,
  // in x[R,H,D], cos[R,half], sin[R,half]; out same; ints {H, D, half}
  kRope,
  // in x[R,G,D]; out [G,D,R]; ints {G, D}
  kStoreK,
  // in x[R,G,D]; out [G,R,D]; ints {G, D}
  kStoreV,
  // R = T. in q[T,H,D], k_past[G,D,P], v_past[G,P,D], k_new[G,D,T],
  // v_new[G,T,D], mask[T,C]; out [T,H,D]; ints {H, G, D}; floats {scale,
  // softcap (0 = none)}
  kAttention,
  // in a[R,width], b[R,width]; out same; ints {width}
  kAdd,
  kMul,
  // in x[R,width]; out same; ints {width}; floats {factor}
  kScale,
  // in x[R,width]; out same; ints {width, Activation}
  kActivate,
  // in gate[R,width], up[R,width]; out same; ints {width, Activation}
  kGatedMul,
  // in x[R,width]; out same; ints {width}; floats {cap}
  kSoftcap,
  // in x[begin + R,width]; out [R,width]: rows begin.. of x; ints {begin,
  // width}
  kCopyRows,

  // --- Rounding: ir/encode.h says what it is ---

  // in codes[R,width] (a graph input of `dtype`); out [R,width]; ints {width,
  // DType, zero_point}; floats {scale}. f16: zero_point 0 and scale 1, unused
  kDecode,
  // in x[R,width]; out codes[R,width] (a graph output of `dtype`); numbers as
  // kDecode
  kEncode,
  // in x[R,width]; out same; ints {width, least, most, zero_point}; floats
  // {scale}: to codes from least to most and back
  kRound,
  // in x[R,width]; out same; ints {width}: to half precision and back
  kRoundF16,

  // --- Linears with encoded weights ---

  // in x[R,K]; out x rounded to 8 bits per row and block of 32
  // (QuantizedRowBytes in kernels.h for each row); ints {K}
  kQuantizeRows,
  // in quantized x[R,K], panels[N,K] q4_1 or q8_0, bias[1,N]?,
  // residual[R,N]?; out [R,N] (may be the residual)
  kMatMulQ,
  // in x[R,K]; out its codes (RowCodesBytes in row_codes.h); ints {K, bytes of
  // a code (1 or 2), zero_point}; floats {scale}. Codes go from 0 to 255 or
  // 65535: signed encodings are shifted.
  kRowCodes,
  // in row codes of x[R,K], panels[N,K] i8 or i16, scales[1,N], sums[1,N] i32
  // (of each row's codes), bias[1,N] i32?; out [R,N]; ints {bytes of a code and
  // zero_point of x, dropped_bits (ir/ops/encoded_linear.h)}; floats {scale of
  // x}
  kCodeMatMul,

  // --- Attention in parts ---

  // in a[B,M,K], b[B,K,N]; out [B,M,N]; B = R; ints {M, K, N, zero_point of a,
  // dropped_bits}; floats {scale, scale of a, scale of b (0, 0 = not encoded)}
  kBatchMatMul,
  // in x[R,width]; out same; ints {width}: over each row
  kSoftmax,
  // in a[R,left] (left may be 0), b[R,right]; out [R,left + right]; ints {left,
  // right}
  kConcat,
  // R = 1. in x[d0,d1,d2,d3]; out axis i is in axis pi; ints {d0 .. d3, p0 ..
  // p3}
  kTranspose,
  // in a[R,width], b[width]; out [R,width]; ints {width}
  kAddRow,
  // in x[R,n,M], weight[1,M] f32, bias[1,M] f32; out same; ints {n, M};
  // floats {eps}
  kLayerNorm,
  // in x[R,width], on a grid of u16; out same, on one of u8 (ConvertCode in
  // ir/encode.h); ints {width, multiplier, shift, offset, zero_point of x,
  // zero_point}; floats {scale of x, scale}
  kConvertCodes,
  // in x[R,width], halves; out same, on a grid of u8 (EncodeHalf in
  // ir/encode.h); ints {width, zero_point}; floats {scale}
  kConvertHalves,
  // in as kCodeMatMul, x of one byte; out [R,N], on a grid of u8
  // (base/chip_arithmetic.h); ints {zero_point of x, zero_point}; floats {scale
  // of x, scale}
  kFixedPointMatMul,
  // as kRmsNorm, with fast_root and rounds_down of ir/ops/rms_norm.cc, the
  // latter onto a grid of u16; ints {n, M, fast_root (0 or 1), zero_point};
  // floats {eps, weight_offset, scale (0: is not rounded)}
  kChipRmsNorm,
  // in x[R,width]; out same (base/chip_softmax.h); ints {width}; floats {scale
  // of x}
  kChipSoftmax,
};

inline constexpr int kNumPlanOps = static_cast<int>(PlanOp::kChipSoftmax) + 1;

}  // namespace hexllm::cpu

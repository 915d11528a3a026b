// The instructions of a CPU plan: what each reads, writes and is told. The
// contract between cpu/lower* and cpu/engine*. Stored in plans: append, never
// reorder.
//
// All activations are f32, row-major. An instruction works on `rows` rows that
// start at row `first_row` of the step (Instruction in plan.h): rows of the
// step that are padding are skipped. first_row == T marks memory that is not
// laid out by step rows; it is always computed whole.
#pragma once

#include <cstdint>

namespace hexllm::cpu {

// Axes: R rows of the instruction, T step tokens, C context tokens, P = C - T
// past columns, H query heads, G KV heads, D head dim, M, K, N, V widths.
// `half` is half the rotary dims.
enum class PlanOp : uint16_t {
  // in token[R] i32 (a graph input), weight[V,M]; out [R,M]
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
};

inline constexpr int kNumPlanOps = static_cast<int>(PlanOp::kCopyRows) + 1;

}  // namespace hexllm::cpu

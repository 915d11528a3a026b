// The instructions of a CPU plan: what each reads, writes and is told. The contract between cpu/lower* and cpu/engine*.
// All activations are f32, row-major, rows = step tokens T (or the logits rows). Stored in plans: append, never reorder.
#pragma once

#include <cstdint>

namespace hexllm::cpu {

inline constexpr uint32_t kPlanFormatVersion = 1;

// Axes: T step tokens, P past columns, H query heads, G KV heads, D head dim, R rotary dims, M, K, N, V widths.
enum class PlanOp : uint16_t {
  kEmbed,       // in token[T] i32, weight[V,M]             out [T,M]
  kMatMul,      // in x[T,K], weight[N,K], bias?, residual? out [T,N]
  kRmsNorm,     // in x[T*n,M], weight[1,M]                 out same      ints {n}            floats {eps, weight_offset}
  kRope,        // in x[T,H,D], cos[T,R/2], sin[T,R/2]      out same      ints {H, D, R/2}
  kStoreK,      // in x[T,G,D]                              out [G,D,T]   ints {G, D}
  kStoreV,      // in x[T,G,D]                              out [G,T,D]   ints {G, D}
  kAttention,   // in q[T,H,D], k_past, v_past, k_new, v_new, mask[T,C]   out [T,H,D]  ints {H, G, D, P}  floats {scale, softcap}
  kAdd,         // in a, b (same size)                      out           ints {width}
  kMul,         // in a, b                                  out           ints {width}
  kScale,       // in x                                     out           ints {width}        floats {factor}
  kActivate,    // in x                                     out           ints {width, Activation}
  kGatedMul,    // in gate, up                              out           ints {width, Activation}
  kSoftcap,     // in x                                     out           ints {width}        floats {cap}
  kCopyRows,    // in x[T,width]                            out [count,width]   ints {begin, count, width}
};

}  // namespace hexllm::cpu

// RMS and layer normalization and rotary embedding over the vector abstraction
// V (vec_*.h). The definitions are rms_norm_ref.cc, layer_norm_ref.cc and
// rope_ref.cc.
#pragma once

#include <stdint.h>

#include "backend/cpu/kernels/inline.h"
#include "backend/cpu/kernels/kernels.h"

namespace hexllm::cpu {
namespace {

template <class V>
HX_INLINE float SumOfSquares(const float* x, int64_t n) {
  auto sum = V::Set(0.0f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const auto v = V::Load(x + i);
    sum = V::Fma(v, v, sum);
  }
  if (i < n) {
    const auto v = V::LoadPartial(x + i, n - i);
    sum = V::Fma(v, v, sum);
  }
  return V::AddLanes(sum);
}

template <class V>
HX_INLINE void RmsNormBody(const RmsNormArgs& args) {
  const auto offset = V::Set(args.weight_offset);
  for (int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.width;
    float* out = args.out + r * args.width;
    const float mean =
        SumOfSquares<V>(x, args.width) / static_cast<float>(args.width);
    const auto root = V::Set(__builtin_sqrtf(mean + args.eps));
    const auto normalize = [&](auto x_vec, auto weight) {
      return V::Mul(V::Div(x_vec, root), V::Add(weight, offset));
    };
    int64_t i = 0;
    for (; i + 16 <= args.width; i += 16) {
      V::Store(out + i, normalize(V::Load(x + i), V::Load(args.weight + i)));
    }
    const int64_t tail = args.width - i;
    if (tail == 0) continue;
    const auto last = normalize(V::LoadPartial(x + i, tail),
                                V::LoadPartial(args.weight + i, tail));
    V::StorePartial(out + i, last, tail);
  }
}

template <class V>
HX_INLINE float SumOf(const float* x, int64_t n) {
  auto sum = V::Set(0.0f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) sum = V::Add(sum, V::Load(x + i));
  if (i < n) sum = V::Add(sum, V::LoadPartial(x + i, n - i));
  return V::AddLanes(sum);
}

// sum (x - mean)^2.
template <class V>
HX_INLINE float SumOfCentredSquares(const float* x, int64_t n, float mean) {
  const auto means = V::Set(mean);
  auto sum = V::Set(0.0f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const auto v = V::Sub(V::Load(x + i), means);
    sum = V::Fma(v, v, sum);
  }
  if (i < n) {
    // Lanes beyond the row are 0 on both sides.
    float lanes[16];
    V::Store(lanes, means);
    const auto v =
        V::Sub(V::LoadPartial(x + i, n - i), V::LoadPartial(lanes, n - i));
    sum = V::Fma(v, v, sum);
  }
  return V::AddLanes(sum);
}

template <class V>
HX_INLINE void LayerNormBody(const LayerNormArgs& args) {
  const auto width = static_cast<float>(args.width);
  for (int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.width;
    float* out = args.out + r * args.width;
    const float mean = SumOf<V>(x, args.width) / width;
    const float squares = SumOfCentredSquares<V>(x, args.width, mean);
    const auto means = V::Set(mean);
    const auto root = V::Set(__builtin_sqrtf(squares / width + args.eps));
    const auto normalize = [&](auto x_vec, auto weight, auto bias) {
      return V::Add(V::Mul(V::Div(V::Sub(x_vec, means), root), weight), bias);
    };
    int64_t i = 0;
    for (; i + 16 <= args.width; i += 16) {
      V::Store(out + i, normalize(V::Load(x + i), V::Load(args.weight + i),
                                  V::Load(args.bias + i)));
    }
    const int64_t tail = args.width - i;
    if (tail == 0) continue;
    const auto last = normalize(V::LoadPartial(x + i, tail),
                                V::LoadPartial(args.weight + i, tail),
                                V::LoadPartial(args.bias + i, tail));
    V::StorePartial(out + i, last, tail);
  }
}

// One head: the pairs (x[i], x[i + half]). `out` may be `x`.
struct HeadArgs {
  const float* x;
  const float* cos;
  const float* sin;
  float* out;
  int64_t half;
};

template <class V>
HX_INLINE void RotateHead(const HeadArgs& h) {
  const auto first = [](auto a, auto b, auto cos, auto sin) {
    return V::Sub(V::Mul(a, cos), V::Mul(b, sin));
  };
  const auto second = [](auto a, auto b, auto cos, auto sin) {
    return V::Add(V::Mul(b, cos), V::Mul(a, sin));
  };
  int64_t i = 0;
  for (; i + 16 <= h.half; i += 16) {
    const auto a = V::Load(h.x + i);
    const auto b = V::Load(h.x + h.half + i);
    const auto cos = V::Load(h.cos + i);
    const auto sin = V::Load(h.sin + i);
    V::Store(h.out + i, first(a, b, cos, sin));
    V::Store(h.out + h.half + i, second(a, b, cos, sin));
  }
  const int64_t tail = h.half - i;
  if (tail == 0) return;
  const auto a = V::LoadPartial(h.x + i, tail);
  const auto b = V::LoadPartial(h.x + h.half + i, tail);
  const auto cos = V::LoadPartial(h.cos + i, tail);
  const auto sin = V::LoadPartial(h.sin + i, tail);
  V::StorePartial(h.out + i, first(a, b, cos, sin), tail);
  V::StorePartial(h.out + h.half + i, second(a, b, cos, sin), tail);
}

template <class V>
HX_INLINE void RopeBody(const RopeArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    for (int64_t head = 0; head < args.heads; ++head) {
      const int64_t at = (row * args.heads + head) * args.head_dim;
      RotateHead<V>({.x = args.x + at,
                     .cos = args.cos + row * args.half,
                     .sin = args.sin + row * args.half,
                     .out = args.out + at,
                     .half = args.half});
      for (int64_t i = 2 * args.half; i < args.head_dim; ++i) {
        args.out[at + i] = args.x[at + i];
      }
    }
  }
}

}  // namespace
}  // namespace hexllm::cpu

// The element-wise kernels over the vector abstraction V (vec_*.h). The
// definitions are elementwise_ref.cc.
#pragma once

#include <stdint.h>

#include "backend/cpu/kernels/inline.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/math.h"

namespace hexllm::cpu {
namespace {

// out[i] = function(a[i]) for n floats; a tail is padded with zeros.
template <class V, class Function>
HX_INLINE void Map(const float* a, float* out, int64_t n, Function function) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) V::Store(out + i, function(V::Load(a + i)));
  if (i == n) return;
  const auto last = V::LoadPartial(a + i, n - i);
  V::StorePartial(out + i, function(last), n - i);
}

// Two inputs and an output.
struct Binary {
  const float* a;
  const float* b;
  float* out;
  int64_t n;
};

// out[i] = function(a[i], b[i]).
template <class V, class Function>
HX_INLINE void Map2(const Binary& args, Function function) {
  const auto& [a, b, out, n] = args;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    V::Store(out + i, function(V::Load(a + i), V::Load(b + i)));
  }
  if (i == n) return;
  const int64_t tail = n - i;
  const auto last =
      function(V::LoadPartial(a + i, tail), V::LoadPartial(b + i, tail));
  V::StorePartial(out + i, last, tail);
}

// Calls use(f) with the activation as a function on vectors.
template <class V, class Use>
HX_INLINE void WithActivation(Activation activation, Use use) {
  using F = typename V::F;
  switch (activation) {
    case Activation::kSilu:
      return use([](F x) { return Silu<V>(x); });
    case Activation::kGeluTanh:
      return use([](F x) { return GeluTanh<V>(x); });
    case Activation::kGeluErf:
      return use([](F x) { return GeluErf<V>(x); });
  }
}

template <class V>
HX_INLINE void ActivateBody(const float* x, float* out, int64_t n,
                            Activation activation) {
  WithActivation<V>(activation,
                    [&](auto function) { Map<V>(x, out, n, function); });
}

template <class V>
HX_INLINE void GatedMulBody(const Binary& args, Activation activation) {
  WithActivation<V>(activation, [&](auto function) {
    Map2<V>(args,
            [&](auto gate, auto up) { return V::Mul(function(gate), up); });
  });
}

}  // namespace
}  // namespace hexllm::cpu

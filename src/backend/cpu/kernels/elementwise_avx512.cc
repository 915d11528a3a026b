// The element-wise kernels on AVX-512.
#include "backend/cpu/kernels/elementwise_body.h"
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/vec_avx512.h"

namespace hexllm::cpu::avx512 {
namespace {

using V = VecAvx512;

}  // namespace

void Add(const float* a, const float* b, float* out, int64_t n) {
  Map2<V>({a, b, out, n}, [](V::F x, V::F y) { return V::Add(x, y); });
}

void Mul(const float* a, const float* b, float* out, int64_t n) {
  Map2<V>({a, b, out, n}, [](V::F x, V::F y) { return V::Mul(x, y); });
}

void Scale(const float* x, float factor, float* out, int64_t n) {
  const V::F all = V::Set(factor);
  Map<V>(x, out, n, [&](V::F value) { return V::Mul(value, all); });
}

void Activate(const float* x, float* out, int64_t n, Activation activation) {
  ActivateBody<V>(x, out, n, activation);
}

void GatedMul(const float* gate, const float* up, float* out, int64_t n,
              Activation activation) {
  GatedMulBody<V>({gate, up, out, n}, activation);
}

void Softcap(const float* x, float cap, float* out, int64_t n) {
  const V::F all = V::Set(cap);
  Map<V>(x, out, n, [&](V::F value) { return CapSoftly<V>(value, all); });
}

}  // namespace hexllm::cpu::avx512

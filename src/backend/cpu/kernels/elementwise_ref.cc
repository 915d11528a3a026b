// The definitions of the element-wise kernels.
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/vec_scalar.h"

namespace hexllm::cpu::ref {
namespace {

using V = VecScalar;

float Apply(Activation activation, float x) {
  switch (activation) {
    case Activation::kSilu:
      return Silu<V>(x);
    case Activation::kGeluTanh:
      return GeluTanh<V>(x);
    case Activation::kGeluErf:
      return GeluErf<V>(x);
  }
  return x;
}

}  // namespace

void Add(const float* a, const float* b, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void Mul(const float* a, const float* b, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}

void Scale(const float* x, float factor, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * factor;
}

void Activate(const float* x, float* out, int64_t n, Activation activation) {
  for (int64_t i = 0; i < n; ++i) out[i] = Apply(activation, x[i]);
}

void GatedMul(const float* gate, const float* up, float* out, int64_t n,
              Activation activation) {
  for (int64_t i = 0; i < n; ++i) out[i] = Apply(activation, gate[i]) * up[i];
}

void Softcap(const float* x, float cap, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = CapSoftly<V>(x[i], cap);
}

}  // namespace hexllm::cpu::ref

// The kernels of every instruction set, one namespace each, under the same
// names: ref (the definition, plain C++), avx2, avx512, neon. Used by the table
// (table.cc) and by the files that define them. Engines use FindKernels().
#pragma once

#include "backend/cpu/kernels/kernels.h"

#define HX_WEIGHT_TYPE(name) void MatMul##name(const MatMulArgs& args);
#define HX_DECLARE_ELEMENTWISE                                                 \
  void Add(const float* a, const float* b, float* out, int64_t n);             \
  void Mul(const float* a, const float* b, float* out, int64_t n);             \
  void Scale(const float* x, float factor, float* out, int64_t n);             \
  void Activate(const float* x, float* out, int64_t n, Activation activation); \
  void GatedMul(const float* gate, const float* up, float* out, int64_t n,     \
                Activation activation);                                        \
  void Softcap(const float* x, float cap, float* out, int64_t n);
#define HX_DECLARE_ROWWISE               \
  void RmsNorm(const RmsNormArgs& args); \
  void Rope(const RopeArgs& args);       \
  void Attention(const AttentionArgs& args);

namespace hexllm::cpu {

namespace ref {
#include "backend/cpu/kernels/weight_types.def"
HX_DECLARE_ELEMENTWISE
HX_DECLARE_ROWWISE
}  // namespace ref

namespace avx2 {
#include "backend/cpu/kernels/weight_types.def"
HX_DECLARE_ELEMENTWISE
HX_DECLARE_ROWWISE
}  // namespace avx2

namespace avx512 {
#include "backend/cpu/kernels/weight_types.def"
HX_DECLARE_ELEMENTWISE
HX_DECLARE_ROWWISE
}  // namespace avx512

namespace neon {
#include "backend/cpu/kernels/weight_types.def"
HX_DECLARE_ELEMENTWISE
HX_DECLARE_ROWWISE
}  // namespace neon

}  // namespace hexllm::cpu

#undef HX_WEIGHT_TYPE
#undef HX_DECLARE_ELEMENTWISE
#undef HX_DECLARE_ROWWISE

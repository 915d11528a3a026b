// The kernels of every instruction set, one namespace each, under the same
// names: ref (the definition, plain C++), avx2, avx512, neon. Sets that add an
// instruction for integer dot products to one of these (avx512vnni, neondot)
// have only the kernels that use it. Used by the table (table.cc) and by the
// files that define them. Engines use FindKernels().
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
#define HX_DECLARE_ROWWISE                   \
  void RmsNorm(const RmsNormArgs& args);     \
  void LayerNorm(const LayerNormArgs& args); \
  void Rope(const RopeArgs& args);           \
  void Attention(const AttentionArgs& args);
#define HX_DECLARE_ROUNDING                             \
  void QuantizeRows(const QuantizeRowsArgs& args);      \
  void RoundCodes(const RoundCodesArgs& args);          \
  void RoundF16(const float* x, float* out, int64_t n); \
  void Softmax(const SoftmaxArgs& args);                \
  void ChipSoftmax(const ChipSoftmaxArgs& args);        \
  void BatchMatMul(const BatchMatMulArgs& args);
#define HX_DECLARE_INTEGER_DOTS              \
  void MatMulQ4_1Q(const MatMulQArgs& args); \
  void MatMulQ8_0Q(const MatMulQArgs& args); \
  void CodeMatMul(const CodeMatMulArgs& args);

namespace hexllm::cpu {

namespace ref {
#include "backend/cpu/kernels/weight_types.def"
HX_DECLARE_ELEMENTWISE
HX_DECLARE_ROWWISE
HX_DECLARE_ROUNDING
HX_DECLARE_INTEGER_DOTS
}  // namespace ref

namespace avx2 {
#include "backend/cpu/kernels/weight_types.def"
HX_DECLARE_ELEMENTWISE
HX_DECLARE_ROWWISE
HX_DECLARE_ROUNDING
HX_DECLARE_INTEGER_DOTS
}  // namespace avx2

namespace avx512 {
#include "backend/cpu/kernels/weight_types.def"
HX_DECLARE_ELEMENTWISE
HX_DECLARE_ROWWISE
HX_DECLARE_ROUNDING
HX_DECLARE_INTEGER_DOTS
}  // namespace avx512

namespace avx512vnni {
HX_DECLARE_INTEGER_DOTS
}  // namespace avx512vnni

namespace neon {
#include "backend/cpu/kernels/weight_types.def"
HX_DECLARE_ELEMENTWISE
HX_DECLARE_ROWWISE
HX_DECLARE_ROUNDING
HX_DECLARE_INTEGER_DOTS
}  // namespace neon

namespace neondot {
HX_DECLARE_INTEGER_DOTS
}  // namespace neondot

}  // namespace hexllm::cpu

#undef HX_WEIGHT_TYPE
#undef HX_DECLARE_ELEMENTWISE
#undef HX_DECLARE_ROWWISE
#undef HX_DECLARE_ROUNDING
#undef HX_DECLARE_INTEGER_DOTS

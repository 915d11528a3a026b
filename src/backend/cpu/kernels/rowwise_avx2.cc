// Normalizations and rotary embedding on AVX2.
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/rowwise_body.h"
#include "backend/cpu/kernels/vec_avx2.h"

namespace hexllm::cpu::avx2 {

void RmsNorm(const RmsNormArgs& args) { RmsNormBody<VecAvx2>(args); }

void LayerNorm(const LayerNormArgs& args) { LayerNormBody<VecAvx2>(args); }

void Rope(const RopeArgs& args) { RopeBody<VecAvx2>(args); }

}  // namespace hexllm::cpu::avx2

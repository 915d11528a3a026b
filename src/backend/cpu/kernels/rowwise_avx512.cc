// Normalizations and rotary embedding on AVX-512.
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/rowwise_body.h"
#include "backend/cpu/kernels/vec_avx512.h"

namespace hexllm::cpu::avx512 {

void RmsNorm(const RmsNormArgs& args) { RmsNormBody<VecAvx512>(args); }

void LayerNorm(const LayerNormArgs& args) { LayerNormBody<VecAvx512>(args); }

void Rope(const RopeArgs& args) { RopeBody<VecAvx512>(args); }

}  // namespace hexllm::cpu::avx512

// Normalizations and rotary embedding on NEON.
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/rowwise_body.h"
#include "backend/cpu/kernels/vec_neon.h"

namespace hexllm::cpu::neon {

void RmsNorm(const RmsNormArgs& args) { RmsNormBody<VecNeon>(args); }

void LayerNorm(const LayerNormArgs& args) { LayerNormBody<VecNeon>(args); }

void Rope(const RopeArgs& args) { RopeBody<VecNeon>(args); }

}  // namespace hexllm::cpu::neon

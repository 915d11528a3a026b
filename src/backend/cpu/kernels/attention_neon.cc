// Attention on NEON.
#include "backend/cpu/kernels/attention_body.h"
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/vec_neon.h"

namespace hexllm::cpu::neon {

void Attention(const AttentionArgs& args) { AttentionBody<VecNeon>(args); }

}  // namespace hexllm::cpu::neon

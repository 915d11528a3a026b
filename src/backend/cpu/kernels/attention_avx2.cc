// Attention on AVX2.
#include "backend/cpu/kernels/attention_body.h"
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/vec_avx2.h"

namespace hexllm::cpu::avx2 {

void Attention(const AttentionArgs& args) { AttentionBody<VecAvx2>(args); }

}  // namespace hexllm::cpu::avx2

// Attention on AVX-512.
#include "backend/cpu/kernels/attention_body.h"
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/vec_avx512.h"

namespace hexllm::cpu::avx512 {

void Attention(const AttentionArgs& args) { AttentionBody<VecAvx512>(args); }

}  // namespace hexllm::cpu::avx512

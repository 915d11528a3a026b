// Matrix products in double on AVX-512.
#include "backend/cpu/kernels/batch_matmul_body.h"
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/vec_avx512.h"

namespace hexllm::cpu::avx512 {

void BatchMatMul(const BatchMatMulArgs& args) {
  BatchMatMulBody<VecAvx512>(args);
}

}  // namespace hexllm::cpu::avx512

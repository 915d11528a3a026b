// Matrix products in double on AVX2.
#include "backend/cpu/kernels/batch_matmul_body.h"
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/vec_avx2.h"

namespace hexllm::cpu::avx2 {

void BatchMatMul(const BatchMatMulArgs& args) {
  BatchMatMulBody<VecAvx2>(args);
}

}  // namespace hexllm::cpu::avx2

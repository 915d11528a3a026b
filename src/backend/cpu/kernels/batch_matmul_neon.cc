// Matrix products in double on NEON.
#include "backend/cpu/kernels/batch_matmul_body.h"
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/vec_neon.h"

namespace hexllm::cpu::neon {

void BatchMatMul(const BatchMatMulArgs& args) {
  BatchMatMulBody<VecNeon>(args);
}

}  // namespace hexllm::cpu::neon

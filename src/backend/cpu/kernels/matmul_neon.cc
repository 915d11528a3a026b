// Matmul on NEON.
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/matmul_body.h"
#include "backend/cpu/kernels/vec_neon.h"
#include "backend/cpu/kernels/weights.h"
#include "backend/cpu/kernels/weights_k.h"

namespace hexllm::cpu::neon {

#define HX_WEIGHT_TYPE(name)                       \
  void MatMul##name(const MatMulArgs& args) {      \
    MatMul<VecNeon, Weights##name<VecNeon>>(args); \
  }
#include "backend/cpu/kernels/weight_types.def"
#undef HX_WEIGHT_TYPE

}  // namespace hexllm::cpu::neon

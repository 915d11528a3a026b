// Matmul on AVX2.
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/matmul_body.h"
#include "backend/cpu/kernels/vec_avx2.h"
#include "backend/cpu/kernels/weights.h"
#include "backend/cpu/kernels/weights_k.h"

namespace hexllm::cpu::avx2 {

#define HX_WEIGHT_TYPE(name)                       \
  void MatMul##name(const MatMulArgs& args) {      \
    MatMul<VecAvx2, Weights##name<VecAvx2>>(args); \
  }
#include "backend/cpu/kernels/weight_types.def"
#undef HX_WEIGHT_TYPE

}  // namespace hexllm::cpu::avx2

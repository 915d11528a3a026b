// Matmul on AVX-512.
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/matmul_body.h"
#include "backend/cpu/kernels/vec_avx512.h"
#include "backend/cpu/kernels/weights.h"
#include "backend/cpu/kernels/weights_k.h"

namespace hexllm::cpu::avx512 {

#define HX_WEIGHT_TYPE(name)                           \
  void MatMul##name(const MatMulArgs& args) {          \
    MatMul<VecAvx512, Weights##name<VecAvx512>>(args); \
  }
#include "backend/cpu/kernels/weight_types.def"
#undef HX_WEIGHT_TYPE

}  // namespace hexllm::cpu::avx512

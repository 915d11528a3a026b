// Products of 8-bit codes on NEON with dot product instructions.
#include "backend/cpu/kernels/code_matmul_body.h"
#include "backend/cpu/kernels/dots_body.h"
#include "backend/cpu/kernels/dots_neondot.h"
#include "backend/cpu/kernels/isa_kernels.h"

namespace hexllm::cpu::neondot {

using D = DotsNeonDot;

void MatMulQ4_1Q(const MatMulQArgs& args) {
  MatMulQBody<D, PanelQ4_1<D>>(args);
}
void MatMulQ8_0Q(const MatMulQArgs& args) {
  MatMulQBody<D, PanelQ8_0<D>>(args);
}
void CodeMatMul(const CodeMatMulArgs& args) { CodeMatMulBody<D>(args); }

}  // namespace hexllm::cpu::neondot

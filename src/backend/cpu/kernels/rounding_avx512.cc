// Rounding and softmax on AVX-512.
#include "backend/cpu/kernels/chip_softmax_body.h"
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/rounding_body.h"
#include "backend/cpu/kernels/vec_avx512.h"

namespace hexllm::cpu::avx512 {

using V = VecAvx512;

void QuantizeRows(const QuantizeRowsArgs& args) { QuantizeRowsBody<V>(args); }
void RoundCodes(const RoundCodesArgs& args) { RoundCodesBody<V>(args); }
void RoundF16(const float* x, float* out, int64_t n) {
  Map<V>(x, out, n, [](V::F value) { return V::RoundToHalf(value); });
}
void Softmax(const SoftmaxArgs& args) { SoftmaxBody<V>(args); }
void ChipSoftmax(const ChipSoftmaxArgs& args) { ChipSoftmaxBody(args); }

}  // namespace hexllm::cpu::avx512

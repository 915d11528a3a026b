// The definition of RMS normalization.
#include <cmath>

#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/lanes_ref.h"

namespace hexllm::cpu::ref {

void RmsNorm(const RmsNormArgs& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.width;
    float* out = args.out + r * args.width;
    const float mean = Dot(x, x, args.width) / static_cast<float>(args.width);
    const float root = std::sqrt(mean + args.eps);
    for (int64_t i = 0; i < args.width; ++i) {
      out[i] = x[i] / root * (args.weight[i] + args.weight_offset);
    }
  }
}

}  // namespace hexllm::cpu::ref

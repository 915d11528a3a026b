// The definition of batch_matmul.
#include <cmath>

#include "backend/cpu/kernels/isa_kernels.h"

namespace hexllm::cpu::ref {
namespace {

// How inputs become numbers: as they are, or counted in steps of a grid.
struct Steps {
  bool counted;
  float inverse;

  explicit Steps(float step)
      : counted(step != 0.0f), inverse(counted ? 1.0f / step : 0.0f) {}
  double operator()(float x) const {
    return double{counted ? std::nearbyint(x * inverse) : x};
  }
};

}  // namespace

void BatchMatMul(const BatchMatMulArgs& args) {
  const Steps a_steps(args.a_step), b_steps(args.b_step);
  const double unit = a_steps.counted && b_steps.counted
                          ? double{args.a_step} * double{args.b_step}
                          : 1.0;
  const double factor = unit * double{args.scale};
  for (int64_t m = 0; m < args.m; ++m) {
    for (int64_t n = 0; n < args.n; ++n) {
      double sum = 0.0;
      for (int64_t k = 0; k < args.k; ++k) {
        const double a = a_steps(args.a[m * args.a_stride + k]);
        sum += a * b_steps(args.b[k * args.b_stride + n]);
      }
      if (args.zeros != nullptr) {
        const double zero = args.zeros[n];
        const double rounded = zero >= args.place / 2 ? 1.0 : 0.0;
        sum = (std::floor((sum + zero) / args.place) - rounded) * args.place;
      }
      args.out[m * args.out_stride + n] = static_cast<float>(sum * factor);
    }
  }
}

}  // namespace hexllm::cpu::ref

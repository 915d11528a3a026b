// The definition of rounding to codes and to half precision, and of softmax.
#include <cmath>

#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/vec_scalar.h"
#include "base/chip_softmax.h"
#include "base/half.h"

namespace hexllm::cpu::ref {
namespace {

float RoundToGrid(const RoundCodesArgs& args, float x) {
  const float scaled = std::nearbyint(x / args.scale);
  if (std::isnan(scaled)) return 0.0f;
  const auto zero = static_cast<float>(args.zero_point);
  const float code =
      std::fmin(std::fmax(scaled + zero, static_cast<float>(args.least)),
                static_cast<float>(args.most));
  return (code - zero) * args.scale;
}

void SoftmaxRow(const float* x, float* out, int64_t width) {
  float max = -INFINITY;
  for (int64_t i = 0; i < width; ++i) max = VecScalar::Max(x[i], max);
  // A row that is hidden as a whole: all exponentials are zero.
  if (max == -INFINITY) max = 0.0f;
  // Adding this leaves multiples of 2^-36 of a number in [0, 1].
  constexpr double kGrid = 65536.0;
  double exact = 0;
  for (int64_t i = 0; i < width; ++i) {
    out[i] = Exp<VecScalar>(x[i] - max);
    exact += (static_cast<double>(out[i]) + kGrid) - kGrid;
  }
  const auto sum = static_cast<float>(exact);
  for (int64_t i = 0; i < width; ++i)
    out[i] = sum == 0.0f ? 0.0f : out[i] / sum;
}

}  // namespace

void RoundCodes(const RoundCodesArgs& args) {
  for (int64_t i = 0; i < args.n; ++i) {
    args.out[i] = RoundToGrid(args, args.x[i]);
  }
}

void RoundF16(const float* x, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = F16ToF32(F32ToF16(x[i]));
}

void Softmax(const SoftmaxArgs& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    SoftmaxRow(args.x + r * args.width, args.out + r * args.width, args.width);
  }
}

void ChipSoftmax(const ChipSoftmaxArgs& args) {
  const auto width = static_cast<size_t>(args.width);
  for (int64_t r = 0; r < args.rows; ++r) {
    hexllm::ChipSoftmax({args.x + r * args.width, width}, args.scale,
                        {args.out + r * args.width, width});
  }
}

}  // namespace hexllm::cpu::ref

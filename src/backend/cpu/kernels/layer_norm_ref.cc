// The definition of layer normalization.
#include <cmath>

#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/lanes_ref.h"

namespace hexllm::cpu::ref {
namespace {

// sum of f(x[k]); a short tail is padded with zeros.
template <typename F>
float SumOf(const float* x, int64_t n, F&& f) {
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i)
    lanes[i % kLanes] = f(x[i], lanes[i % kLanes]);
  return AddLanes(lanes);
}

}  // namespace

void LayerNorm(const LayerNormArgs& args) {
  const auto width = static_cast<float>(args.width);
  for (int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.width;
    float* out = args.out + r * args.width;
    const float mean =
        SumOf(x, args.width, [](float v, float sum) { return sum + v; }) /
        width;
    const float squares = SumOf(x, args.width, [mean](float v, float sum) {
      return std::fma(v - mean, v - mean, sum);
    });
    const float root = std::sqrt(squares / width + args.eps);
    for (int64_t i = 0; i < args.width; ++i)
      out[i] = (x[i] - mean) / root * args.weight[i] + args.bias[i];
  }
}

}  // namespace hexllm::cpu::ref

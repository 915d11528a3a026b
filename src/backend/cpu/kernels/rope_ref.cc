// The definition of rotary position embedding (half-split pairs).
#include "backend/cpu/kernels/isa_kernels.h"

namespace hexllm::cpu::ref {
namespace {

// One head. Every product is rounded, then their sum or difference.
void RotateHead(const RopeArgs& args, int64_t row, int64_t head) {
  const int64_t at = (row * args.heads + head) * args.head_dim;
  const float* x = args.x + at;
  float* out = args.out + at;
  const float* cos = args.cos + row * args.half;
  const float* sin = args.sin + row * args.half;
  for (int64_t i = 0; i < args.half; ++i) {
    const float a = x[i];
    const float b = x[i + args.half];
    out[i] = a * cos[i] - b * sin[i];
    out[i + args.half] = b * cos[i] + a * sin[i];
  }
  for (int64_t i = 2 * args.half; i < args.head_dim; ++i) out[i] = x[i];
}

}  // namespace

void Rope(const RopeArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    for (int64_t head = 0; head < args.heads; ++head) {
      RotateHead(args, row, head);
    }
  }
}

}  // namespace hexllm::cpu::ref

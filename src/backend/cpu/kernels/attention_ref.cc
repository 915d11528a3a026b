// The definition of attention over the visible columns of one row.
#include <cmath>

#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/lanes_ref.h"
#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/vec_scalar.h"

namespace hexllm::cpu::ref {
namespace {

// Keys and values of column c: past columns first, then the new ones.
float Key(const AttentionArgs& args, int64_t d, int64_t c) {
  return c < args.past ? args.k_past[d * args.past + c]
                       : args.k_new[d * args.step + c - args.past];
}
float Value(const AttentionArgs& args, int64_t c, int64_t d) {
  return c < args.past ? args.v_past[c * args.head_dim + d]
                       : args.v_new[(c - args.past) * args.head_dim + d];
}

bool Visible(const AttentionArgs& args, int64_t c) {
  return args.mask[c] != -INFINITY;
}

float Score(const AttentionArgs& args, const float* q, int64_t c) {
  float sum = 0.0f;
  for (int64_t d = 0; d < args.head_dim; ++d) {
    sum = std::fma(q[d], Key(args, d, c), sum);
  }
  const float score = sum * args.scale;
  if (args.softcap == 0.0f) return score;
  return CapSoftly<VecScalar>(score, args.softcap);
}

// Turns `count` scores into exp(score - max) and returns their 16-lane sum.
float Exponentials(float* scores, int64_t count) {
  float max = -INFINITY;
  for (int64_t j = 0; j < count; ++j) max = VecScalar::Max(scores[j], max);
  float lanes[kLanes] = {};
  for (int64_t j = 0; j < count; ++j) {
    scores[j] = Exp<VecScalar>(scores[j] - max);
    lanes[j % kLanes] += scores[j];
  }
  return AddLanes(lanes);
}

void AttendHead(const AttentionArgs& args, const float* q, float* out) {
  const int64_t columns = args.past + args.step;
  float* scores = args.scratch;
  int64_t count = 0;
  for (int64_t c = 0; c < columns; ++c) {
    if (Visible(args, c)) scores[count++] = Score(args, q, c);
  }
  const float total = Exponentials(scores, count);
  for (int64_t d = 0; d < args.head_dim; ++d) {
    float sum = 0.0f;
    int64_t j = 0;
    for (int64_t c = 0; c < columns; ++c) {
      if (Visible(args, c)) sum = std::fma(scores[j++], Value(args, c, d), sum);
    }
    out[d] = count == 0 ? 0.0f : sum / total;
  }
}

}  // namespace

void Attention(const AttentionArgs& args) {
  for (int64_t g = 0; g < args.group; ++g) {
    const int64_t at = g * args.head_dim;
    AttendHead(args, args.q + at, args.out + at);
  }
}

}  // namespace hexllm::cpu::ref

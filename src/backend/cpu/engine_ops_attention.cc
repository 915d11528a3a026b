// Attention, whole and in parts.
#include <algorithm>
#include <cmath>

#include "backend/cpu/engine_split.h"

namespace hexllm::cpu {
namespace {

// One (row, KV head) pair.
void RunAttentionHead(const Step& step, const RunContext& context, int64_t row,
                      int64_t head, float* scratch) {
  const int64_t tokens = step.rows.count;
  const int64_t group = step.heads / step.kv_heads;
  const int64_t q_at = (row * step.heads + head * group) * step.head_dim;
  const int64_t past_at = head * step.head_dim * step.past;
  const int64_t new_at = head * step.head_dim * tokens;
  context.kernels.attention({.q = step.In(0) + q_at,
                             .k_past = step.In(1) + past_at,
                             .v_past = step.In(2) + past_at,
                             .k_new = step.In(3) + new_at,
                             .v_new = step.In(4) + new_at,
                             .mask = step.In(5) + row * (step.past + tokens),
                             .out = step.Out() + q_at,
                             .group = group,
                             .head_dim = step.head_dim,
                             .past = step.past,
                             .step = tokens,
                             .scale = step.factor,
                             .softcap = step.softcap,
                             .scratch = scratch});
}

}  // namespace

void RunRope(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const int64_t width = step.heads * step.head_dim;
  Split(context, rows.count(), width, [&](int64_t begin, int64_t end) {
    const int64_t row = rows.begin + begin;
    context.kernels.rope({.x = step.In(0) + row * width,
                          .cos = step.In(1) + row * step.half,
                          .sin = step.In(2) + row * step.half,
                          .out = step.Out() + row * width,
                          .rows = end - begin,
                          .heads = step.heads,
                          .head_dim = step.head_dim,
                          .half = step.half});
  });
}

// Threads take turns at the rows of a KV head: later rows see more columns, and
// a head's keys stay in the cache while they are read.
void RunAttention(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const int64_t items = rows.count() * step.kv_heads;
  const int64_t item_work = 2 * (step.heads / step.kv_heads) * step.head_dim *
                            (step.past + step.rows.count);
  const int64_t parts = NumParts(context, items, item_work);
  RunParts(context, parts, [&](int64_t part) {
    float* scratch = context.scratch + part * context.scratch_stride;
    for (int64_t item = part; item < items; item += parts) {
      RunAttentionHead(step, context, rows.begin + item % rows.count(),
                       item / rows.count(), scratch);
    }
  });
}

// Split over the rows of all matrices; a part that ends within a matrix is cut
// there.
namespace {

// What the zero point of a adds to the columns of b[K,N], modulo 2^dropped_bits
// (BatchMatMulArgs::zeros).
void FindZeros(const Step& step, const float* b, double* zeros) {
  const float inverse = 1.0f / step.b_step;
  const int64_t mask = (int64_t{1} << step.dropped_bits) - 1;
  std::fill_n(zeros, step.width, 0.0);
  for (int64_t k = 0; k < step.inner; ++k, b += step.width) {
    for (int64_t n = 0; n < step.width; ++n)
      zeros[n] += static_cast<double>(RoundToInt(b[n] * inverse));
  }
  for (int64_t n = 0; n < step.width; ++n) {
    const int64_t zero = step.grid.zero_point * static_cast<int64_t>(zeros[n]);
    zeros[n] = static_cast<double>(zero & mask);
  }
}

}  // namespace

void RunBatchMatMul(const Step& step, const RunContext& context) {
  const int64_t m = step.matrix_rows;
  const int64_t k = step.inner;
  const int64_t n = step.width;
  const int64_t rows = step.rows.count * m;
  const int64_t parts = NumParts(context, rows, std::max<int64_t>(1, k * n));
  const bool drops = step.dropped_bits > 0;
  RunParts(context, parts, [&](int64_t part) {
    auto* const scratch = reinterpret_cast<double*>(
        context.scratch + part * context.scratch_stride);
    double* const zeros = scratch + kBatchMatMulScratch;
    const int64_t end = rows * (part + 1) / parts;
    for (int64_t row = rows * part / parts; row < end;) {
      const int64_t matrix = row / m;
      const int64_t stop = std::min(end, (matrix + 1) * m);
      if (drops) FindZeros(step, step.In(1) + matrix * k * n, zeros);
      context.kernels.batch_matmul(
          {.a = step.In(0) + row * k,
           .a_stride = k,
           .b = step.In(1) + matrix * k * n,
           .b_stride = n,
           .out = step.Out() + row * n,
           .out_stride = n,
           .m = stop - row,
           .k = k,
           .n = n,
           .scale = step.factor,
           .a_step = step.a_step,
           .b_step = step.b_step,
           .zeros = drops ? zeros : nullptr,
           .place = std::ldexp(1.0, static_cast<int>(step.dropped_bits)),
           .scratch = scratch});
      row = stop;
    }
  });
}

void RunSoftmax(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  Split(context, rows.count(), kActivationWork * step.width,
        [&](int64_t begin, int64_t end) {
          const int64_t at = (rows.begin + begin) * step.width;
          context.kernels.softmax({.x = step.In(0) + at,
                                   .out = step.Out() + at,
                                   .rows = end - begin,
                                   .width = step.width});
        });
}

}  // namespace hexllm::cpu

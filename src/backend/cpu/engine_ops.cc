#include "backend/cpu/engine_ops.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/check.h"
#include "base/dequantize.h"

namespace hexllm::cpu {
namespace {

// Output columns of a matmul go to threads in whole cache lines.
constexpr int64_t kLineFloats = 16;
// exp and the like, in multiply-adds.
constexpr int64_t kActivationWork = 16;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// --- Splitting work ---

// Into how many parts `items` items are split. `item_work` is in multiply-adds
// or moved floats.
int64_t NumParts(const RunContext& context, int64_t items, int64_t item_work) {
  const int64_t grain = std::max<int64_t>(1, context.grain_work / item_work);
  return std::min<int64_t>(context.pool.threads(), CeilDiv(items, grain));
}

// Calls f(part) for 0 .. parts - 1, each on a thread of its own.
template <typename F>
void RunParts(const RunContext& context, int64_t parts, F&& f) {
  context.pool.ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) f(part);
  });
}

// Calls f(begin, end) for consecutive parts of 0 .. items - 1.
template <typename F>
void Split(const RunContext& context, int64_t items, int64_t item_work, F&& f) {
  const int64_t parts = NumParts(context, items, item_work);
  RunParts(context, parts, [&](int64_t part) {
    f(items * part / parts, items * (part + 1) / parts);
  });
}

// The rows of the instruction that are not padding, counted from its first.
struct ActiveRows {
  int64_t begin;
  int64_t end;
  int64_t count() const { return end - begin; }
};

ActiveRows Active(const Step& step, const RunContext& context) {
  const int64_t padding = context.begin - step.rows.first;
  return {.begin = std::clamp<int64_t>(padding, 0, step.rows.count),
          .end = step.rows.count};
}

// --- Weights ---

void RunEmbed(const Step& step, const RunContext& context) {
  const auto* ids = reinterpret_cast<const int32_t*>(step.at[0]);
  const WeightView& table = step.weight;
  const ActiveRows rows = Active(step, context);
  Split(context, rows.count(), step.width, [&](int64_t begin, int64_t end) {
    for (int64_t r = rows.begin + begin; r < rows.begin + end; ++r) {
      const ByteSpan row(table.data + ids[r] * table.row_bytes,
                         static_cast<size_t>(table.row_bytes));
      DequantizeRow(
          table.dtype, row,
          {step.Out() + r * step.width, static_cast<size_t>(step.width)});
    }
  });
}

// Split over output columns, so that each weight row is decoded once.
void RunMatMul(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  if (rows.count() == 0) return;
  const int64_t k = step.weight.cols;
  const int64_t skipped = rows.begin * step.width;
  const int64_t lines = CeilDiv(step.width, kLineFloats);
  const int64_t parts =
      NumParts(context, lines, kLineFloats * k * rows.count());
  RunParts(context, parts, [&](int64_t part) {
    const int64_t n_begin = lines * part / parts * kLineFloats;
    const int64_t n_end = lines * (part + 1) / parts * kLineFloats;
    step.matmul(
        {.x = step.In(0) + rows.begin * k,
         .x_stride = k,
         .w = step.weight.data,
         .w_row_bytes = step.weight.row_bytes,
         .bias = step.In(2),
         .residual = step.at[3] == nullptr ? nullptr : step.In(3) + skipped,
         .out = step.Out() + skipped,
         .out_stride = step.width,
         .rows = rows.count(),
         .k = k,
         .n_begin = n_begin,
         .n_end = std::min(n_end, step.width),
         .scratch = context.scratch + part * context.scratch_stride});
  });
}

void RunRmsNorm(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const int64_t first = rows.begin * step.vectors;
  Split(context, rows.count() * step.vectors, step.width,
        [&](int64_t begin, int64_t end) {
          const int64_t at = (first + begin) * step.width;
          context.kernels.rms_norm({.x = step.In(0) + at,
                                    .weight = step.In(1),
                                    .out = step.Out() + at,
                                    .rows = end - begin,
                                    .width = step.width,
                                    .eps = step.eps,
                                    .weight_offset = step.weight_offset});
        });
}

// --- Attention and its inputs ---

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

// [R,G,D] to [G,D,R]: a transpose of R x (G D).
void RunStoreK(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const int64_t columns = step.kv_heads * step.head_dim;
  Split(context, columns, rows.end, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const float* from = step.In(0) + c;
      float* to = step.Out() + c * rows.end;
      for (int64_t r = rows.begin; r < rows.end; ++r) to[r] = from[r * columns];
    }
  });
}

// [R,G,D] to [G,R,D].
void RunStoreV(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const auto head_bytes = static_cast<size_t>(step.head_dim) * sizeof(float);
  const int64_t row_work = step.kv_heads * step.head_dim;
  Split(context, rows.count(), row_work, [&](int64_t begin, int64_t end) {
    for (int64_t r = rows.begin + begin; r < rows.begin + end; ++r) {
      for (int64_t g = 0; g < step.kv_heads; ++g) {
        const int64_t from = (r * step.kv_heads + g) * step.head_dim;
        const int64_t to = (g * rows.end + r) * step.head_dim;
        std::memcpy(step.Out() + to, step.In(0) + from, head_bytes);
      }
    }
  });
}

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

// --- Element by element ---

// Calls f(offset, floats) for parts of the active rows.
template <typename F>
void SplitElements(const Step& step, const RunContext& context, int64_t work,
                   F&& f) {
  const ActiveRows rows = Active(step, context);
  const int64_t first = rows.begin * step.width;
  const int64_t lines = CeilDiv(rows.count() * step.width, kLineFloats);
  Split(context, lines, kLineFloats * work, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * kLineFloats;
    const int64_t stop = std::min(end * kLineFloats, rows.count() * step.width);
    f(first + at, stop - at);
  });
}

void RunAdd(const Step& step, const RunContext& context) {
  SplitElements(step, context, 1, [&](int64_t at, int64_t n) {
    context.kernels.add(step.In(0) + at, step.In(1) + at, step.Out() + at, n);
  });
}

void RunMul(const Step& step, const RunContext& context) {
  SplitElements(step, context, 1, [&](int64_t at, int64_t n) {
    context.kernels.mul(step.In(0) + at, step.In(1) + at, step.Out() + at, n);
  });
}

void RunScale(const Step& step, const RunContext& context) {
  SplitElements(step, context, 1, [&](int64_t at, int64_t n) {
    context.kernels.scale(step.In(0) + at, step.factor, step.Out() + at, n);
  });
}

void RunActivate(const Step& step, const RunContext& context) {
  SplitElements(step, context, kActivationWork, [&](int64_t at, int64_t n) {
    context.kernels.activate(step.In(0) + at, step.Out() + at, n,
                             step.activation);
  });
}

void RunGatedMul(const Step& step, const RunContext& context) {
  SplitElements(step, context, kActivationWork, [&](int64_t at, int64_t n) {
    context.kernels.gated_mul(step.In(0) + at, step.In(1) + at, step.Out() + at,
                              n, step.activation);
  });
}

void RunSoftcap(const Step& step, const RunContext& context) {
  SplitElements(step, context, kActivationWork, [&](int64_t at, int64_t n) {
    context.kernels.softcap(step.In(0) + at, step.factor, step.Out() + at, n);
  });
}

void RunCopyRows(const Step& step, const RunContext& context) {
  const int64_t from = step.from_row * step.width;
  SplitElements(step, context, 1, [&](int64_t at, int64_t n) {
    std::memmove(step.Out() + at, step.In(0) + from + at,
                 static_cast<size_t>(n) * sizeof(float));
  });
}

// In the order of PlanOp.
constexpr RunFn kRun[] = {RunEmbed,   RunMatMul,  RunRmsNorm,   RunRope,
                          RunStoreK,  RunStoreV,  RunAttention, RunAdd,
                          RunMul,     RunScale,   RunActivate,  RunGatedMul,
                          RunSoftcap, RunCopyRows};
static_assert(std::size(kRun) == kNumPlanOps);

}  // namespace

RunFn FindRun(PlanOp op) {
  HX_CHECK(static_cast<size_t>(op) < std::size(kRun));
  return kRun[static_cast<size_t>(op)];
}

}  // namespace hexllm::cpu

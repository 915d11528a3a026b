// How a step's work is cut into parts for the threads of the pool. Used by the
// engine_ops*.cc files, which hold how each op runs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/engine_ops.h"

namespace hexllm::cpu {

// Output columns of a matmul go to threads in whole cache lines.
inline constexpr int64_t kLineFloats = 16;
// exp and the like, in multiply-adds.
inline constexpr int64_t kActivationWork = 16;

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Into how many parts `items` items are split. `item_work` is in multiply-adds
// or moved floats.
inline int64_t NumParts(const RunContext& context, int64_t items,
                        int64_t item_work) {
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

inline ActiveRows Active(const Step& step, const RunContext& context) {
  const int64_t padding = context.begin - step.rows.first;
  return {.begin = std::clamp<int64_t>(padding, 0, step.rows.count),
          .end = step.rows.count};
}

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

}  // namespace hexllm::cpu

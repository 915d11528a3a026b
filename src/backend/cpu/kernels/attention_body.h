// Attention over the visible columns of one row, over the vector abstraction V
// (vec_*.h). The definition is attention_ref.cc.
//
// Up to four query heads go together, so that keys and values are loaded once
// for them. The visible columns are walked as runs (typically one in the past
// and one in the new columns); scores lie compacted in scratch, one row per
// head, so that column number j is scores[j] wherever the column itself lies.
#pragma once

#include <stdint.h>

#include "backend/cpu/kernels/inline.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/panel.h"

namespace hexllm::cpu {
namespace {

constexpr float kHidden = -__builtin_inff();

// Consecutive visible columns, all past or all new.
struct Run {
  const float* k;    // key of the first column at d = 0
  int64_t k_stride;  // floats from d to d + 1
  const float* v;    // value of the first column
  int64_t count;     // columns
  int64_t number;    // of the first column, among the visible ones
};

// The first column from `begin` on, before `end`, that is visible (or hidden);
// `end` if there is none.
template <class V>
HX_INLINE int64_t FindColumn(const float* mask, int64_t begin, int64_t end,
                             bool visible) {
  const auto hidden = V::Set(kHidden);
  for (int64_t c = begin; c < end; c += 16) {
    const int64_t n = end - c < 16 ? end - c : 16;
    uint32_t bits = V::NotEqual(V::LoadPartial(mask + c, n), hidden);
    if (!visible) bits = ~bits;
    bits &= (1u << n) - 1;
    if (bits != 0) return c + __builtin_ctz(bits);
  }
  return end;
}

// Calls use(run) for all runs in column order; returns the visible columns.
template <class V, class Use>
HX_INLINE int64_t ForEachRun(const AttentionArgs& args, Use use) {
  struct Part {
    const float *mask, *k, *v;
    int64_t columns;
  };
  const Part parts[] = {
      {args.mask, args.k_past, args.v_past, args.past},
      {args.mask + args.past, args.k_new, args.v_new, args.step}};
  int64_t number = 0;
  for (const Part& part : parts) {
    int64_t end = 0;
    while (true) {
      const int64_t begin = FindColumn<V>(part.mask, end, part.columns, true);
      if (begin == part.columns) break;
      end = FindColumn<V>(part.mask, begin, part.columns, false);
      use(Run{.k = part.k + begin,
              .k_stride = part.columns,
              .v = part.v + begin * args.head_dim,
              .count = end - begin,
              .number = number});
      number += end - begin;
    }
  }
  return number;
}

// Some query heads of a group.
struct Heads {
  const float* q;  // [heads, head_dim]
  float* scores;   // [heads, stride]
  int64_t stride;  // with kScoreSlack floats of room after the last column
  float* out;      // [heads, head_dim]
  int64_t head_dim;
};

// q . k of kVecs registers of columns from `begin` of a run on. A partial tile
// stops at the end of the run; it still writes all its scores.
template <class V, int kHeads, bool kPartial>
HX_INLINE void ScoreTile(const Heads& heads, const Run& run, int64_t begin) {
  constexpr int kVecs = V::ScoreVecs(kHeads);
  typename V::N acc[Bound(kHeads)][Bound(kVecs)];
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 8
    for (int i = 0; i < kVecs; ++i) acc[h][i] = V::NativeSet(0.0f);
  }
  const float* k = run.k + begin;
  for (int64_t d = 0; d < heads.head_dim; ++d, k += run.k_stride) {
    typename V::N columns[Bound(kVecs)];
#pragma GCC unroll 8
    for (int i = 0; i < kVecs; ++i) {
      const int at = i * V::kNative;
      if constexpr (kPartial) {
        columns[i] = V::NativeLoadPartial(k + at, run.count - begin - at);
      } else {
        columns[i] = V::NativeLoad(k + at);
      }
      V::Pin(columns[i]);
    }
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
      const auto q = V::NativeSet(heads.q[h * heads.head_dim + d]);
#pragma GCC unroll 8
      for (int i = 0; i < kVecs; ++i) {
        acc[h][i] = V::NativeFma(q, columns[i], acc[h][i]);
      }
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
    float* out = heads.scores + h * heads.stride + run.number + begin;
#pragma GCC unroll 8
    for (int i = 0; i < kVecs; ++i) {
      V::NativeStore(out + i * V::kNative, acc[h][i]);
    }
  }
}

template <class V, int kHeads>
void ScoreRun(const Heads& heads, const Run& run) {
  constexpr int kColumns = V::ScoreVecs(kHeads) * V::kNative;
  static_assert(kColumns <= kScoreSlack);
  int64_t begin = 0;
  for (; begin + kColumns <= run.count; begin += kColumns) {
    ScoreTile<V, kHeads, false>(heads, run, begin);
  }
  if (begin < run.count) ScoreTile<V, kHeads, true>(heads, run, begin);
}

// Scales and caps `count` scores and returns their maximum. Fills the last
// vector with -infinity, of which the exponential is zero.
template <class V>
float ScaleScores(const AttentionArgs& args, float* scores, int64_t count) {
  const int64_t padded = PaddedK(count);
  const auto scale = V::Set(args.scale);
  const auto cap = V::Set(args.softcap);
  for (int64_t j = 0; j < padded; j += 16) {
    auto score = V::Mul(V::Load(scores + j), scale);
    if (args.softcap != 0.0f) score = CapSoftly<V>(score, cap);
    V::Store(scores + j, score);
  }
  for (int64_t j = count; j < padded; ++j) scores[j] = kHidden;
  auto max = V::Set(kHidden);
  for (int64_t j = 0; j < padded; j += 16) {
    max = V::Max(V::Load(scores + j), max);
  }
  return V::MaxLanes(max);
}

// Turns scores into exp(score - max) and returns their sum.
template <class V>
float Exponentials(float* scores, int64_t count, float max_score) {
  const auto max = V::Set(max_score);
  auto sum = V::Set(0.0f);
  for (int64_t j = 0; j < count; j += 16) {
    const auto e = Exp<V>(V::Sub(V::Load(scores + j), max));
    V::Store(scores + j, e);
    sum = V::Add(sum, e);
  }
  return V::AddLanes(sum);
}

// Adds p . v of a run to kVecs registers of outputs from dimension `d` on.
template <class V, int kHeads, bool kPartial>
HX_INLINE void ValueTile(const Heads& heads, const Run& run, int64_t d) {
  constexpr int kVecs = V::kValueVecs;
  typename V::N acc[Bound(kHeads)][Bound(kVecs)];
  const auto load = [&](const float* p, int i) {
    const int64_t at = d + i * V::kNative;
    if constexpr (kPartial) {
      return V::NativeLoadPartial(p + at, heads.head_dim - at);
    } else {
      return V::NativeLoad(p + at);
    }
  };
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 4
    for (int i = 0; i < kVecs; ++i) {
      acc[h][i] = load(heads.out + h * heads.head_dim, i);
    }
  }
  const float* v = run.v;
  const float* p = heads.scores + run.number;
  for (int64_t j = 0; j < run.count; ++j, v += heads.head_dim) {
    typename V::N values[Bound(kVecs)];
#pragma GCC unroll 4
    for (int i = 0; i < kVecs; ++i) values[i] = load(v, i);
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
      const auto weight = V::NativeSet(p[h * heads.stride + j]);
#pragma GCC unroll 4
      for (int i = 0; i < kVecs; ++i) {
        acc[h][i] = V::NativeFma(weight, values[i], acc[h][i]);
      }
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 4
    for (int i = 0; i < kVecs; ++i) {
      const int64_t at = d + i * V::kNative;
      float* out = heads.out + h * heads.head_dim + at;
      if constexpr (kPartial) {
        V::NativeStorePartial(out, acc[h][i], heads.head_dim - at);
      } else {
        V::NativeStore(out, acc[h][i]);
      }
    }
  }
}

template <class V, int kHeads>
void AddValues(const Heads& heads, const Run& run) {
  constexpr int kDims = V::kValueVecs * V::kNative;
  int64_t d = 0;
  for (; d + kDims <= heads.head_dim; d += kDims) {
    ValueTile<V, kHeads, false>(heads, run, d);
  }
  if (d < heads.head_dim) ValueTile<V, kHeads, true>(heads, run, d);
}

// x[i] = function(x[i]) for n floats.
template <class V, class Function>
HX_INLINE void MapInPlace(float* x, int64_t n, Function function) {
  for (int64_t i = 0; i < n; i += 16) {
    const int64_t size = n - i < 16 ? n - i : 16;
    V::StorePartial(x + i, function(V::LoadPartial(x + i, size)), size);
  }
}

template <class V, int kHeads>
void AttendHeads(const AttentionArgs& args, const Heads& heads) {
  const int64_t count = ForEachRun<V>(
      args, [&](const Run& run) { ScoreRun<V, kHeads>(heads, run); });
  MapInPlace<V>(heads.out, kHeads * heads.head_dim,
                [](auto) { return V::Set(0.0f); });
  if (count == 0) return;
  float sums[Bound(kHeads)];
  for (int h = 0; h < kHeads; ++h) {
    float* scores = heads.scores + h * heads.stride;
    const float max = ScaleScores<V>(args, scores, count);
    sums[h] = Exponentials<V>(scores, count, max);
  }
  ForEachRun<V>(args,
                [&](const Run& run) { AddValues<V, kHeads>(heads, run); });
  for (int h = 0; h < kHeads; ++h) {
    const auto sum = V::Set(sums[h]);
    MapInPlace<V>(heads.out + h * heads.head_dim, heads.head_dim,
                  [&](auto value) { return V::Div(value, sum); });
  }
}

template <class V>
HX_INLINE void AttentionBody(const AttentionArgs& args) {
  using AttendFn = void (*)(const AttentionArgs&, const Heads&);
  static constexpr AttendFn kAttend[] = {AttendHeads<V, 1>, AttendHeads<V, 2>,
                                         AttendHeads<V, 3>, AttendHeads<V, 4>};
  for (int64_t g = 0; g < args.group; g += 4) {
    const int64_t count = args.group - g < 4 ? args.group - g : 4;
    kAttend[count - 1](args, {.q = args.q + g * args.head_dim,
                              .scores = args.scratch,
                              .stride = ScoreStride(args.past + args.step),
                              .out = args.out + g * args.head_dim,
                              .head_dim = args.head_dim});
  }
}

}  // namespace
}  // namespace hexllm::cpu

// Matrix products in double over the vector abstraction V (vec_*.h). The
// definition is batch_matmul_ref.cc.
//
// Slices of both inputs are widened into scratch and multiplied in tiles of
// V::kDoubleRows rows and V::kDoubleVecs registers of columns; the sums lie in
// scratch from one slice of K to the next. Products are exact, so that fusing
// them with the addition changes nothing.
#pragma once

#include <stdint.h>

#include "backend/cpu/kernels/inline.h"
#include "backend/cpu/kernels/kernels.h"

namespace hexllm::cpu {
namespace {

// Sizes of slices: a tile's columns of B (at most 32 KiB) and rows of A stay in
// the L1 cache, all of a slice in L2.
constexpr int64_t kSliceRows = 96;
constexpr int64_t kSliceColumns = 128;
constexpr int64_t kSliceDepth = 128;

// The scratch, in doubles.
struct Slices {
  double* a;     // [kSliceRows, kSliceDepth]
  double* b;     // [kSliceColumns / columns of a tile][k][columns of a tile]
  double* sums;  // [kSliceRows, kSliceColumns]

  HX_INLINE explicit Slices(double* scratch)
      : a(scratch),
        b(a + kSliceRows * kSliceDepth),
        sums(b + kSliceDepth * kSliceColumns) {}
};
static_assert(kSliceRows * kSliceDepth + kSliceDepth * kSliceColumns +
                  kSliceRows * kSliceColumns ==
              kBatchMatMulScratch);

// One slice of the product.
struct Slice {
  int64_t m, rows;
  int64_t n, columns;
  int64_t k, depth;
};

HX_INLINE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// Writes `count` floats as doubles, or, with a step, how many steps they are;
// zeros up to the next multiple of 16. Returns their greatest magnitudes.
template <class V>
HX_INLINE typename V::F Widen(const float* from, int64_t count, float step,
                              double* to) {
  auto most = V::Set(0.0f);
  const auto inverse = V::Set(step == 0.0f ? 0.0f : 1.0f / step);
  for (int64_t i = 0; i < count; i += 16) {
    auto x = V::LoadPartial(from + i, Least(16, count - i));
    if (step != 0.0f) x = V::RoundEven(V::Mul(x, inverse));
    V::StoreWidened(to + i, x);
    most = V::Max(V::Abs(x), most);
  }
  return most;
}

// Whether a slice of A has anything but zeros: of codes (which are no NaN) the
// weights of hidden columns are zeros.
template <class V>
bool WidenA(const BatchMatMulArgs& args, const Slice& s, double* out) {
  auto most = V::Set(0.0f);
  for (int64_t r = 0; r < s.rows; ++r) {
    most = V::Max(Widen<V>(args.a + (s.m + r) * args.a_stride + s.k, s.depth,
                           args.a_step, out + r * kSliceDepth),
                  most);
  }
  return args.a_step == 0.0f || V::MaxLanes(most) != 0.0f;
}

// Columns in groups of those of a tile, each with all of k.
template <class V>
void WidenB(const BatchMatMulArgs& args, const Slice& s, double* out) {
  constexpr int kColumns = V::kDoubleVecs * V::kDoubles;
  constexpr int64_t kGroup = kColumns * kSliceDepth;
  static_assert(kSliceColumns % kColumns == 0);
  double row[kSliceColumns] = {};
  for (int64_t k = 0; k < s.depth; ++k) {
    Widen<V>(args.b + (s.k + k) * args.b_stride + s.n, s.columns, args.b_step,
             row);
    for (int64_t n = 0; n < s.columns; n += kColumns) {
      double* to = out + n / kColumns * kGroup + k * kColumns;
#pragma GCC unroll 4
      for (int i = 0; i < kColumns; i += V::kDoubles) {
        V::DoubleStore(to + i, V::DoubleLoad(row + n + i));
      }
    }
  }
}

// The part of a slice that a tile multiplies.
struct DoubleTile {
  const double* a;
  const double* b;
  double* sums;
  int64_t depth;
  bool first;  // start from zero, not from `sums`
};

template <class V, int kRows>
HX_INLINE void MultiplyTile(const DoubleTile& t) {
  constexpr int kVecs = V::kDoubleVecs;
  typename V::D acc[Bound(kRows)][Bound(kVecs)];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      acc[r][v] =
          t.first ? V::DoubleSet(0.0)
                  : V::DoubleLoad(t.sums + r * kSliceColumns + v * V::kDoubles);
    }
  }
  const double* b = t.b;
  for (int64_t k = 0; k < t.depth; ++k, b += kVecs * V::kDoubles) {
    typename V::D b_vec[Bound(kVecs)];
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      b_vec[v] = V::DoubleLoad(b + v * V::kDoubles);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto a = V::DoubleSet(t.a[r * kSliceDepth + k]);
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) {
        acc[r][v] = V::DoubleFma(a, b_vec[v], acc[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      V::DoubleStore(t.sums + r * kSliceColumns + v * V::kDoubles, acc[r][v]);
    }
  }
}

// `rows` is 1 to kRows.
template <class V, int kRows = V::kDoubleRows>
void MultiplyRows(const DoubleTile& tile, int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return MultiplyRows<V, kRows - 1>(tile, rows);
  }
  MultiplyTile<V, kRows>(tile);
}

template <class V>
void MultiplySlice(const Slices& slices, const Slice& s, bool first) {
  constexpr int64_t kColumns = V::kDoubleVecs * V::kDoubles;
  for (int64_t n = 0; n < s.columns; n += kColumns) {
    for (int64_t m = 0; m < s.rows; m += V::kDoubleRows) {
      const DoubleTile tile = {.a = slices.a + m * kSliceDepth,
                               .b = slices.b + n * kSliceDepth,
                               .sums = slices.sums + m * kSliceColumns + n,
                               .depth = s.depth,
                               .first = first};
      MultiplyRows<V>(tile, Least(V::kDoubleRows, s.rows - m));
    }
  }
}

// How the columns of a slice lose what is below args.place. With places and
// factor' = place * factor, both exact:
//   out = (floor(sum / place + zeros / place) - rounded) * factor'
struct Dropping {
  double zeros[kSliceColumns];  // over place
  double minus[kSliceColumns];  // -rounded * factor'
};

HX_INLINE void FindDropping(const BatchMatMulArgs& args, const Slice& s,
                            double factor, Dropping& out) {
  for (int64_t n = 0; n < s.columns; ++n) {
    const double zero = args.zeros[s.n + n];
    out.zeros[n] = zero / args.place;
    out.minus[n] = zero >= args.place / 2 ? -factor * args.place : 0.0;
  }
}

// Writes the finished sums, as floats. Where bits are dropped, kDrops.
template <class V, bool kDrops>
HX_INLINE void WriteSums(const BatchMatMulArgs& args, const Slice& s,
                         const double* sums, double factor) {
  constexpr int kStep = V::kDoubles;
  Dropping dropping;
  if constexpr (kDrops) FindDropping(args, s, factor, dropping);
  const auto factors = V::DoubleSet(factor * args.place);
  const auto inverse = V::DoubleSet(1.0 / args.place);
  for (int64_t r = 0; r < s.rows; ++r, sums += kSliceColumns) {
    float* out = args.out + (s.m + r) * args.out_stride + s.n;
    // Columns of slices are whole tiles: what lies beyond the last one is
    // computed and not kept.
    for (int64_t n = 0; n < s.columns; n += kStep) {
      auto value = V::DoubleLoad(sums + n);
      if constexpr (kDrops) {
        value = V::DoubleFloor(
            V::DoubleFma(value, inverse, V::DoubleLoad(dropping.zeros + n)));
        value = V::DoubleFma(value, factors, V::DoubleLoad(dropping.minus + n));
      } else {
        value = V::DoubleMul(value, factors);
      }
      if (n + kStep <= s.columns) {
        V::StoreRounded(out + n, value);
      } else {
        float last[Bound(kStep)];
        V::StoreRounded(last, value);
        for (int64_t i = 0; n + i < s.columns; ++i) out[n + i] = last[i];
      }
    }
  }
}

template <class V>
void FinishSums(const BatchMatMulArgs& args, const Slice& s,
                const double* sums) {
  const double unit =
      args.a_step == 0.0f
          ? 1.0
          : static_cast<double>(args.a_step) * static_cast<double>(args.b_step);
  const double factor = unit * static_cast<double>(args.scale);
  if (args.zeros != nullptr) {
    WriteSums<V, true>(args, s, sums, factor);
  } else {
    WriteSums<V, false>(args, s, sums, factor);
  }
}

template <class V>
HX_INLINE void BatchMatMulBody(const BatchMatMulArgs& args) {
  const Slices slices(args.scratch);
  for (int64_t n = 0; n < args.n; n += kSliceColumns) {
    for (int64_t m = 0; m < args.m; m += kSliceRows) {
      Slice s = {.m = m,
                 .rows = Least(kSliceRows, args.m - m),
                 .n = n,
                 .columns = Least(kSliceColumns, args.n - n),
                 .k = 0,
                 .depth = 0};
      bool first = true;
      for (; s.k < args.k || s.k == 0; s.k += kSliceDepth) {
        s.depth = Least(kSliceDepth, args.k - s.k);
        const bool last = s.k + kSliceDepth >= args.k;
        // Sums start somewhere, if only from zeros.
        if (!WidenA<V>(args, s, slices.a) && !(first && last)) continue;
        const bool stays = m > 0 && args.k <= kSliceDepth;
        if (!stays) WidenB<V>(args, s, slices.b);
        MultiplySlice<V>(slices, s, first);
        first = false;
      }
      FinishSums<V>(args, s, slices.sums);
    }
  }
}

}  // namespace
}  // namespace hexllm::cpu

// Products of rows of 8-bit codes and packed weights (packed.h), over the
// abstraction D of integer dot products (dots_*.h). The definition is
// quant_ref.cc.
//
// A lane is an output: 16 of them, a panel, lie beside each other in registers,
// so nothing is added across lanes and every instruction set does the same
// operations. A tile is a panel, or a part of it, and some activation rows:
// weights are read once for all of them. One row (decoding) is bound by memory:
// panels are read front to back, asking ahead.
//
// DotsAvx512 (dots_avx512.h) tells what D offers.
#pragma once

#include <stdint.h>

#include "backend/cpu/kernels/inline.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/packed_layout.h"

namespace hexllm::cpu {
namespace {

// How far ahead of their use weights are asked for: about the latency of memory
// at the speed of one core. Past the end of the weights it asks in vain.
constexpr int64_t kAskAhead = 4096;

// Activation rows that go through all panels together: their codes stay in the
// L2 cache, and each panel is read from memory once for them.
constexpr int64_t kRowChunk = 64;

constexpr int64_t kLineBytes = kPackedRows * kPackedGroup;

// --- The two kinds of codes. A line is 64 bytes of them.

// Codes 0 to 15, two groups of four elements per line.
template <class D>
struct NibbleCodes {
  using X = typename D::NibbleX;
  using Sum = typename D::NibbleSum;
  static constexpr int kLines = 4;
  struct Weights {
    typename D::W low, high;
  };
  HX_INLINE static Weights Read(const uint8_t* line) {
    const auto w = D::LoadW(line);
    return {D::LowNibbles(w), D::HighNibbles(w)};
  }
  HX_INLINE static void Prepare(const int8_t* codes, X& x) {
    D::PrepareNibbleX(codes, x);
  }
  HX_INLINE static Sum Start(int32_t) { return D::StartNibbles(); }
  HX_INLINE static void Add(Sum& sum, const Weights& w, const X& x, int line) {
    D::AddNibbles(sum, w.low, x, 2 * line);
    D::AddNibbles(sum, w.high, x, 2 * line + 1);
  }
  HX_INLINE static typename D::I Total(const Sum& sum) {
    return D::TotalNibbles(sum);
  }
};

// Codes -128 to 127, stored as code + 128, one group per line.
template <class D>
struct ByteCodes {
  using X = typename D::ByteX;
  using Sum = typename D::ByteSum;
  static constexpr int kLines = 8;
  using Weights = typename D::ByteW;
  HX_INLINE static Weights Read(const uint8_t* line) {
    return D::SplitBytes(D::LoadW(line));
  }
  HX_INLINE static void Prepare(const int8_t* codes, X& x) {
    D::PrepareByteX(codes, x);
  }
  // `sum` is that of all activation codes that will be multiplied.
  HX_INLINE static Sum Start(int32_t sum) { return D::StartBytes(sum); }
  HX_INLINE static void Add(Sum& sum, const Weights& w, const X& x, int line) {
    D::AddBytes(sum, w, x, line);
  }
  HX_INLINE static typename D::I Total(const Sum& sum) {
    return D::TotalBytes(sum);
  }
};

// --- The packed types.

template <class D>
struct PanelQ4_1 {
  using Codes = NibbleCodes<D>;
  static constexpr PackedFormat kFormat = kPackedQ4_1;
  static constexpr bool kHasMinimum = true;
};
template <class D>
struct PanelQ8_0 {
  using Codes = ByteCodes<D>;
  static constexpr PackedFormat kFormat = kPackedQ8_0;
  static constexpr bool kHasMinimum = false;
};

// Packed weights as the kernels walk through them.
struct Panels {
  const uint8_t* w;
  PackedFormat format;
  int64_t blocks;
  int64_t panel_bytes;

  HX_INLINE Panels(const std::byte* bytes, const PackedFormat& packed,
                   int64_t block_count)
      : w(reinterpret_cast<const uint8_t*>(bytes)),
        format(packed),
        blocks(block_count),
        panel_bytes(PackedPanelSize(packed, block_count)) {}

  // Of column n, in block 0.
  HX_INLINE const uint8_t* Codes(int64_t n) const {
    return w + n / kPackedRows * panel_bytes +
           PackedCodesOffset(format, blocks) + n % kPackedRows * kPackedGroup;
  }
  HX_INLINE const uint8_t* Factors(int64_t n) const {
    return w + n / kPackedRows * panel_bytes + n % kPackedRows * 2;
  }
};

// Columns and activation rows of a product. A tile takes kRows rows from `row`
// on, and the columns of kVecs registers from `n` on; register v is that of
// column n + v * kLanes.
struct TilePlace {
  int64_t row;
  int64_t n;
  int64_t n_end;  // of the columns that exist
};

// Bytes from the codes (or factors, `bytes` each) of a tile's first column to
// those of register v.
template <class D>
HX_INLINE int64_t VecOffset(const Panels& panels, int v, int64_t bytes) {
  const int column = v * D::kLanes;
  return column / kPackedRows * panels.panel_bytes +
         column % kPackedRows * bytes;
}

// Adds the products of one block to sum[kRows][kVecs]. `codes` are those of the
// block at the tile's first column.
template <class D, class Codes, int kRows, int kVecs>
HX_INLINE void AddBlock(const Panels& panels, const uint8_t* codes,
                        const typename Codes::X* x,
                        typename Codes::Sum (*sum)[Bound(kVecs)]) {
#pragma GCC unroll 8
  for (int line = 0; line < Codes::kLines; ++line) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      const uint8_t* at =
          codes + VecOffset<D>(panels, v, kPackedGroup) + line * kLineBytes;
      // To L2, which can wait for more lines at a time than L1.
      __builtin_prefetch(at + kAskAhead, 0, 2);
      const auto w = Codes::Read(at);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) Codes::Add(sum[r][v], w, x[r], line);
    }
  }
}

// The integer sums of a block as floats, times their scales, onto acc.
template <class D, class Q, int kRows, int kVecs>
HX_INLINE void ScaleBlock(const QuantizedRows& x, const Panels& panels,
                          const uint8_t* factors, int64_t first,
                          const typename Q::Codes::Sum (*sum)[Bound(kVecs)],
                          typename D::F (*acc)[Bound(kVecs)]) {
  typename D::F d[Bound(kVecs)], m[Bound(kVecs)];
#pragma GCC unroll 4
  for (int v = 0; v < kVecs; ++v) {
    const uint8_t* at = factors + VecOffset<D>(panels, v, 2);
    d[v] = D::LoadHalves(at);
    if constexpr (Q::kHasMinimum) m[v] = D::LoadHalves(at + kPackedRows * 2);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const float scale = x.scales[first + r * panels.blocks];
    const auto scales = D::Set(scale);
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      acc[r][v] = D::Fma(D::FromInt(Q::Codes::Total(sum[r][v])),
                         D::Mul(d[v], scales), acc[r][v]);
    }
    if constexpr (Q::kHasMinimum) {
      const auto all =
          D::Set(scale * static_cast<float>(x.sums[first + r * panels.blocks]));
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) acc[r][v] = D::Fma(m[v], all, acc[r][v]);
    }
  }
}

// Writes outputs of row r from column n on, of which `count` exist.
template <class D>
HX_INLINE void FinishOutputs(const MatMulQArgs& args, int64_t r, int64_t n,
                             typename D::F sum, int64_t count) {
  const int64_t at = r * args.out_stride + n;
  if (count >= D::kLanes) {
    if (args.bias != nullptr) sum = D::Add(sum, D::Load(args.bias + n));
    if (args.residual != nullptr) {
      sum = D::Add(sum, D::Load(args.residual + at));
    }
    return D::Store(args.out + at, sum);
  }
  float sums[Bound(D::kLanes)];
  D::Store(sums, sum);
  for (int64_t i = 0; i < count; ++i) {
    if (args.bias != nullptr) sums[i] += args.bias[n + i];
    if (args.residual != nullptr) sums[i] += args.residual[at + i];
    args.out[at + i] = sums[i];
  }
}

template <class D, class Q, int kRows, int kVecs>
HX_INLINE void MatMulQTile(const MatMulQArgs& args, const Panels& panels,
                           const TilePlace& at) {
  using Codes = typename Q::Codes;
  typename D::F acc[Bound(kRows)][Bound(kVecs)];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) acc[r][v] = D::Set(0.0f);
  }
  const uint8_t* codes = panels.Codes(at.n);
  const uint8_t* factors = panels.Factors(at.n);
  for (int64_t b = 0; b < panels.blocks; ++b) {
    const int64_t first = at.row * panels.blocks + b;
    typename Codes::Sum sum[Bound(kRows)][Bound(kVecs)];
    typename Codes::X x[Bound(kRows)];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      Codes::Prepare(args.x.codes + first * kQuantBlock + r * args.k, x[r]);
      const auto start = Codes::Start(args.x.sums[first + r * panels.blocks]);
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) sum[r][v] = start;
    }
    AddBlock<D, Codes, kRows, kVecs>(panels, codes, x, sum);
    ScaleBlock<D, Q, kRows, kVecs>(args.x, panels, factors, first, sum, acc);
    codes += Q::kFormat.code_bytes;
    factors += Q::kFormat.factor_bytes;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      const int64_t n = at.n + v * D::kLanes;
      FinishOutputs<D>(args, at.row + r, n, acc[r][v], at.n_end - n);
    }
  }
}

// --- The loops around tiles.

// Registers of one panel, and of a tile.
template <class D>
constexpr int kPanelVecs = static_cast<int>(kPackedRows) / D::kLanes;
template <class D, int kRows>
constexpr int kVecsOfTile = kRows == 1 ? kPanelVecs<D> : D::kTileVecs;

// Columns that go together through all rows of a chunk: whole panels.
template <class D>
constexpr int64_t kColumnGroup =
    D::kTileVecs > kPanelVecs<D> ? D::kTileVecs* D::kLanes : kPackedRows;

// A number as a type.
template <int kNumber>
struct Int {
  static constexpr int kValue = kNumber;
};

// Calls tile(registers, place) for the column group at place.n, in tiles of
// kVecs registers and, where fewer columns are left, of a panel.
template <class D, int kVecs, class Tile>
HX_INLINE void ForEachTile(TilePlace place, Tile tile) {
  const int64_t group_end = place.n + kColumnGroup<D>;
  const int64_t end =
      (place.n_end + kPackedRows - 1) / kPackedRows * kPackedRows;
  const int64_t stop = end < group_end ? end : group_end;
  constexpr int64_t kColumns = kVecs * D::kLanes;
  for (; place.n + kColumns <= stop; place.n += kColumns) {
    tile(Int<kVecs>(), place);
  }
  if constexpr (kVecs > kPanelVecs<D>) {
    for (; place.n < stop; place.n += kPackedRows) {
      tile(Int<kPanelVecs<D>>(), place);
    }
  }
}

// A column group and `rows` rows, 1 to kRows.
template <class D, class Q, int kRows = D::kTileRows>
void MatMulQRows(const MatMulQArgs& args, const Panels& panels,
                 const TilePlace& place, int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return MatMulQRows<D, Q, kRows - 1>(args, panels, place, rows);
    }
  }
  ForEachTile<D, kVecsOfTile<D, kRows>>(
      place, [&](auto vecs, const TilePlace& at) {
        MatMulQTile<D, Q, kRows, vecs.kValue>(args, panels, at);
      });
}

// A chunk of rows and the columns of a product.
struct Extent {
  int64_t row, row_end;
  int64_t n, n_end;
};

// Calls use(place, rows) for all column groups and rows, in tiles of about
// equal size.
template <class D, class Use>
HX_INLINE void ForEachGroup(const Extent& extent, Use use) {
  const int64_t rows = extent.row_end - extent.row;
  const int64_t tiles = (rows + D::kTileRows - 1) / D::kTileRows;
  const int64_t size = (rows + tiles - 1) / tiles;
  for (int64_t n = extent.n; n < extent.n_end; n += kColumnGroup<D>) {
    for (int64_t row = extent.row; row < extent.row_end; row += size) {
      const int64_t left = extent.row_end - row;
      use(TilePlace{.row = row, .n = n, .n_end = extent.n_end},
          left < size ? left : size);
    }
  }
}

// The end of the chunk of rows that begins at `begin`.
HX_INLINE int64_t ChunkEnd(int64_t begin, int64_t rows) {
  return rows - begin < kRowChunk ? rows : begin + kRowChunk;
}

template <class D, class Q>
HX_INLINE void MatMulQBody(const MatMulQArgs& args) {
  const Panels panels(args.w, Q::kFormat, args.k / kQuantBlock);
  for (int64_t row = 0; row < args.rows; row += kRowChunk) {
    ForEachGroup<D>({row, ChunkEnd(row, args.rows), args.n_begin, args.n_end},
                    [&](const TilePlace& place, int64_t rows) {
                      MatMulQRows<D, Q>(args, panels, place, rows);
                    });
  }
}

}  // namespace
}  // namespace hexllm::cpu

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
  HX_INLINE static X Prepare(const int8_t* codes) {
    return D::PrepareNibbleX(codes);
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
  HX_INLINE static X Prepare(const int8_t* codes) {
    return D::PrepareByteX(codes);
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

// Activation rows from `row` on and a panel: columns from `n` on, of which
// `count` exist. A tile takes some registers of the panel from `lane` on.
struct TilePlace {
  const uint8_t* panel;
  int64_t blocks;
  int64_t row;
  int64_t n;
  int64_t count;
  int64_t lane;
};

// Adds the products of one block to sum[kRows][kVecs]. `codes` are those of the
// block at the tile's first lane.
template <class D, class Codes, int kRows, int kVecs>
HX_INLINE void AddBlock(const uint8_t* codes, const typename Codes::X* x,
                        typename Codes::Sum (*sum)[Bound(kVecs)]) {
#pragma GCC unroll 8
  for (int line = 0; line < Codes::kLines; ++line) {
    __builtin_prefetch(codes + line * kLineBytes + kAskAhead);
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      const auto w =
          Codes::Read(codes + line * kLineBytes + v * D::kLanes * kPackedGroup);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) Codes::Add(sum[r][v], w, x[r], line);
    }
  }
}

// The integer sums of a block as floats, times their scales, onto acc.
template <class D, class Q, int kRows, int kVecs>
HX_INLINE void ScaleBlock(const MatMulQArgs& args, const TilePlace& at,
                          int64_t block,
                          const typename Q::Codes::Sum (*sum)[Bound(kVecs)],
                          typename D::F (*acc)[Bound(kVecs)]) {
  const uint8_t* factors =
      at.panel + block * Q::kFormat.factor_bytes + at.lane * 2;
#pragma GCC unroll 4
  for (int v = 0; v < kVecs; ++v) {
    const auto d = D::LoadHalves(factors + v * D::kLanes * 2);
    typename D::F m = d;
    if constexpr (Q::kHasMinimum) {
      m = D::LoadHalves(factors + (kPackedRows + v * D::kLanes) * 2);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const int64_t i = (at.row + r) * at.blocks + block;
      const float scale = args.x.scales[i];
      acc[r][v] = D::Fma(D::FromInt(Q::Codes::Total(sum[r][v])),
                         D::Mul(d, D::Set(scale)), acc[r][v]);
      if constexpr (Q::kHasMinimum) {
        const float all = scale * static_cast<float>(args.x.sums[i]);
        acc[r][v] = D::Fma(m, D::Set(all), acc[r][v]);
      }
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
HX_INLINE void MatMulQTile(const MatMulQArgs& args, const TilePlace& at) {
  using Codes = typename Q::Codes;
  typename D::F acc[Bound(kRows)][Bound(kVecs)];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) acc[r][v] = D::Set(0.0f);
  }
  const uint8_t* codes = at.panel + PackedCodesOffset(Q::kFormat, at.blocks) +
                         at.lane * kPackedGroup;
  for (int64_t b = 0; b < at.blocks; ++b) {
    typename Codes::Sum sum[Bound(kRows)][Bound(kVecs)];
    typename Codes::X x[Bound(kRows)];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const int64_t row = at.row + r;
      x[r] = Codes::Prepare(args.x.codes + row * args.k + b * kQuantBlock);
      const auto start = Codes::Start(args.x.sums[row * at.blocks + b]);
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) sum[r][v] = start;
    }
    AddBlock<D, Codes, kRows, kVecs>(codes + b * Q::kFormat.code_bytes, x, sum);
    ScaleBlock<D, Q, kRows, kVecs>(args, at, b, sum, acc);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      const int64_t lane = at.lane + v * D::kLanes;
      FinishOutputs<D>(args, at.row + r, at.n + lane, acc[r][v],
                       at.count - lane);
    }
  }
}

// One tile of int_dot; `row_sums` are of the codes of the tile's rows.
template <class D, int kRows, int kVecs>
HX_INLINE void IntDotTile(const IntDotArgs& args, const TilePlace& at,
                          const int32_t* row_sums) {
  using Codes = ByteCodes<D>;
  typename Codes::Sum sum[Bound(kRows)][Bound(kVecs)];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) sum[r][v] = Codes::Start(row_sums[r]);
  }
  const uint8_t* codes = at.panel + at.lane * kPackedGroup;
  for (int64_t b = 0; b < at.blocks; ++b) {
    typename Codes::X x[Bound(kRows)];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      x[r] = Codes::Prepare(args.a + (at.row + r) * args.a_stride +
                            b * kQuantBlock);
    }
    AddBlock<D, Codes, kRows, kVecs>(codes + b * kPackedI8.code_bytes, x, sum);
  }
  for (int r = 0; r < kRows; ++r) {
    int32_t totals[kPackedRows];
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      D::StoreInts(totals + v * D::kLanes, Codes::Total(sum[r][v]));
    }
    const int64_t left = at.count - at.lane;
    int32_t* out = args.out + (at.row + r) * args.out_stride + at.n + at.lane;
    for (int64_t i = 0; i < kVecs * D::kLanes && i < left; ++i) {
      out[i] = totals[i];
    }
  }
}

// --- The loops around tiles.

// Calls tile(place) for the tiles of a panel that take kVecs registers.
template <class D, int kVecs, class Tile>
HX_INLINE void ForEachLane(TilePlace place, Tile tile) {
  for (; place.lane < kPackedRows; place.lane += kVecs * D::kLanes) {
    tile(place);
  }
}

// Registers of a panel that a tile takes.
template <class D>
constexpr int TileVecs(int rows) {
  return rows == 1 ? static_cast<int>(kPackedRows) / D::kLanes : D::kTileVecs;
}

template <class D, class Q, int kRows = D::kTileRows>
void MatMulQRows(const MatMulQArgs& args, const TilePlace& place,
                 int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return MatMulQRows<D, Q, kRows - 1>(args, place, rows);
  }
  constexpr int kVecs = TileVecs<D>(kRows);
  ForEachLane<D, kVecs>(place, [&](const TilePlace& at) {
    MatMulQTile<D, Q, kRows, kVecs>(args, at);
  });
}

template <class D, int kRows = D::kTileRows>
void IntDotRows(const IntDotArgs& args, const TilePlace& place, int64_t rows,
                const int32_t* row_sums) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return IntDotRows<D, kRows - 1>(args, place, rows, row_sums);
    }
  }
  constexpr int kVecs = TileVecs<D>(kRows);
  ForEachLane<D, kVecs>(place, [&](const TilePlace& at) {
    IntDotTile<D, kRows, kVecs>(args, at, row_sums);
  });
}

// A product as panels and chunks of rows.
struct PanelWalk {
  const std::byte* w;
  PackedFormat format;
  int64_t blocks;
  int64_t n_begin, n_end;
};

// Calls use(place, rows) for all panels and the rows [begin, end), in tiles of
// about equal size.
template <class D, class Use>
HX_INLINE void ForEachTile(const PanelWalk& walk, int64_t begin, int64_t end,
                           Use use) {
  const int64_t tiles = (end - begin + D::kTileRows - 1) / D::kTileRows;
  const int64_t size = (end - begin + tiles - 1) / tiles;
  const int64_t panel_bytes = PackedPanelSize(walk.format, walk.blocks);
  const auto* w = reinterpret_cast<const uint8_t*>(walk.w);
  for (int64_t n = walk.n_begin; n < walk.n_end; n += kPackedRows) {
    TilePlace place = {.panel = w + n / kPackedRows * panel_bytes,
                       .blocks = walk.blocks,
                       .row = begin,
                       .n = n,
                       .count = walk.n_end - n,
                       .lane = 0};
    for (; place.row < end; place.row += size) {
      use(place, end - place.row < size ? end - place.row : size);
    }
  }
}

// The end of the chunk of rows that begins at `begin`.
HX_INLINE int64_t ChunkEnd(int64_t begin, int64_t rows) {
  return rows - begin < kRowChunk ? rows : begin + kRowChunk;
}

template <class D, class Q>
HX_INLINE void MatMulQBody(const MatMulQArgs& args) {
  const PanelWalk walk = {args.w, Q::kFormat, args.k / kQuantBlock,
                          args.n_begin, args.n_end};
  for (int64_t begin = 0; begin < args.rows; begin += kRowChunk) {
    ForEachTile<D>(walk, begin, ChunkEnd(begin, args.rows),
                   [&](const TilePlace& place, int64_t rows) {
                     MatMulQRows<D, Q>(args, place, rows);
                   });
  }
}

HX_INLINE int32_t SumCodes(const int8_t* codes, int64_t blocks) {
  int32_t sum = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t i = 0; i < kQuantBlock; ++i) sum += codes[b * kQuantBlock + i];
  }
  return sum;
}

template <class D>
HX_INLINE void IntDotBody(const IntDotArgs& args) {
  const int64_t blocks = (args.k + kQuantBlock - 1) / kQuantBlock;
  const PanelWalk walk = {args.w, kPackedI8, blocks, args.n_begin, args.n_end};
  for (int64_t begin = 0; begin < args.rows; begin += kRowChunk) {
    const int64_t end = ChunkEnd(begin, args.rows);
    int32_t sums[kRowChunk];
    for (int64_t r = begin; r < end; ++r) {
      sums[r - begin] = SumCodes(args.a + r * args.a_stride, blocks);
    }
    ForEachTile<D>(walk, begin, end, [&](const TilePlace& place, int64_t rows) {
      IntDotRows<D>(args, place, rows, sums + (place.row - begin));
    });
  }
}

}  // namespace
}  // namespace hexllm::cpu

// Matmul for every weight type and instruction set, over the vector abstraction
// V (vec_*.h) and the decoders W (weights.h). Two regimes with the same bits:
//  - Up to V::kDirectRows activation rows (decoding tokens): weights go from
//    packed bytes through registers into the dot products, four weight rows at
//    a time, whose independent chains hide the latency of fma.
//  - More rows (prompts): a panel of weight rows is decoded once into scratch
//    (or used in place: f32), then multiplied by all activation rows in tiles
//    of 4 weight rows x V::kTileRows activation rows of accumulators.
// A lane's sum is over k = lane, lane + 16, ... in order, so accumulators are
// kept, or saved and restored between slices of k, never split.
#pragma once

#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/panel.h"

namespace hexllm::cpu {
namespace {

HX_INLINE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

HX_INLINE const uint8_t* WeightRow(const MatMulArgs& args, int64_t n) {
  return reinterpret_cast<const uint8_t*>(args.w) + n * args.w_row_bytes;
}

// Writes out[r, n..n + count) from finished sums.
template <class V>
HX_INLINE void FinishRow(const MatMulArgs& args, int64_t r, int64_t n,
                         const float* sums, int64_t count) {
  const int64_t at = r * args.out_stride + n;
  for (int64_t i = 0; i < count; i += 16) {
    const int64_t size = Smaller(16, count - i);
    auto sum = V::LoadPartial(sums + i, size);
    if (args.bias != nullptr) {
      sum = V::Add(sum, V::LoadPartial(args.bias + n + i, size));
    }
    if (args.residual != nullptr) {
      sum = V::Add(sum, V::LoadPartial(args.residual + at + i, size));
    }
    V::StorePartial(args.out + at + i, sum, size);
  }
}

// The last `count` < 16 weights of a row of a plain type, padded with zeros.
template <class V, class W>
HX_INLINE typename V::F DecodeTail(const uint8_t* block, int64_t count) {
  uint8_t padded[Bound(W::kBlockBytes)] = {};
  memcpy(padded, block, static_cast<size_t>(count * (W::kBlockBytes / 16)));
  typename V::F out[1];
  W::Decode(padded, W::Read(padded), 0, out);
  return out[0];
}

// Weight rows that are decoded at once.
constexpr int kDirectWeights = 4;

// Outputs of a row that are finished at once.
constexpr int64_t kDirectOutputs = 64;

// How far ahead of their use weights are asked for: about the latency of memory
// at the speed of one core. Past the end of the weights it asks in vain.
constexpr int64_t kPrefetchBytes = 4096;

// --- Few activation rows.

// W::Read of the blocks at `offset` of kDirectWeights rows.
template <class V, class W>
HX_INLINE void ReadBlocks(const uint8_t* const* rows, int64_t offset,
                          typename W::Shared* shared) {
  if constexpr (W::kHalfPairs) {
    alignas(32) float pairs[8];
    V::LoadHalfPairs(rows, offset, pairs);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) shared[i] = {pairs[2 * i], pairs[2 * i + 1]};
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < kDirectWeights; ++i) {
      shared[i] = W::Read(rows[i] + offset);
    }
  }
}

// Sums of kX activation rows with kDirectWeights weight rows.
template <class V, int kX>
struct DirectSums {
  typename V::F at[Bound(kX)][Bound(kDirectWeights)];
};

// The last args.k % 16 elements, after `blocks` blocks of a plain type.
template <class V, class W, int kX>
HX_INLINE void AddDirectTail(const MatMulArgs& args, const uint8_t* const* rows,
                             int64_t blocks, DirectSums<V, kX>& sum) {
  const int64_t tail = args.k % 16;
  if (tail == 0) return;
#pragma GCC unroll 4
  for (int i = 0; i < kDirectWeights; ++i) {
    const auto w = DecodeTail<V, W>(rows[i] + blocks * W::kBlockBytes, tail);
#pragma GCC unroll 4
    for (int r = 0; r < kX; ++r) {
      const float* x = args.x + r * args.x_stride + blocks * 16;
      sum.at[r][i] = V::Fma(V::LoadPartial(x, tail), w, sum.at[r][i]);
    }
  }
}

// Dot products of kX activation rows with kDirectWeights weight rows.
template <class V, class W, int kX>
HX_INLINE DirectSums<V, kX> DotDirect(const MatMulArgs& args,
                                      const uint8_t* const* rows) {
  constexpr int kRows = kDirectWeights;
  constexpr int kBlock = W::kParts * W::kVecs * 16;
  DirectSums<V, kX> sum;
#pragma GCC unroll 4
  for (int r = 0; r < kX; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sum.at[r][i] = V::Set(0.0f);
  }
  const float* x = args.x;
  const int64_t blocks = args.k / kBlock;
  for (int64_t b = 0; b < blocks; ++b) {
    typename W::Shared shared[Bound(kRows)];
    ReadBlocks<V, W>(rows, b * W::kBlockBytes, shared);
    for (int part = 0; part < W::kParts; ++part) {
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const uint8_t* block = rows[i] + b * W::kBlockBytes;
        __builtin_prefetch(block + kPrefetchBytes +
                           part * (W::kBlockBytes / W::kParts));
        typename V::F w[Bound(W::kVecs)];
        W::Decode(block, shared[i], part, w);
#pragma GCC unroll 4
        for (int r = 0; r < kX; ++r) {
#pragma GCC unroll 2
          for (int v = 0; v < W::kVecs; ++v) {
            const auto x_vec = V::Load(x + r * args.x_stride + 16 * v);
            sum.at[r][i] = V::Fma(x_vec, w[v], sum.at[r][i]);
          }
        }
      }
      x += W::kVecs * 16;
    }
  }
  if constexpr (kBlock == 16) {
    AddDirectTail<V, W, kX>(args, rows, blocks, sum);
  }
  return sum;
}

// kX activation rows.
template <class V, class W, int kX>
void MatMulDirect(const MatMulArgs& args) {
  constexpr int kRows = kDirectWeights;
  for (int64_t n = args.n_begin; n < args.n_end; n += kDirectOutputs) {
    const int64_t count = Smaller(kDirectOutputs, args.n_end - n);
    float sums[Bound(kX)][kDirectOutputs];
    for (int64_t i = 0; i < count; i += kRows) {
      // A short group repeats its last row and drops the copies.
      const uint8_t* rows[Bound(kRows)];
      for (int j = 0; j < kRows; ++j) {
        rows[j] = WeightRow(args, n + Smaller(i + j, count - 1));
      }
      const auto sum = DotDirect<V, W, kX>(args, rows);
#pragma GCC unroll 4
      for (int r = 0; r < kX; ++r) V::AddLanes4(sum.at[r], sums[r] + i);
    }
    for (int r = 0; r < kX; ++r) FinishRow<V>(args, r, n, sums[r], count);
  }
}

// --- Many activation rows.

// Some weight rows as floats: in scratch, or (f32) in place.
struct Panel {
  const float* w;
  int64_t stride;  // floats between rows
  int64_t n;       // output column of the first row
  int64_t rows;
};

// Decodes one row of k weights.
template <class V, class W>
void DecodeRow(const uint8_t* row, int64_t k, float* out) {
  constexpr int kBlock = W::kParts * W::kVecs * 16;
  const int64_t blocks = k / kBlock;
  for (int64_t b = 0; b < blocks; ++b) {
    const auto shared = W::Read(row);
    for (int part = 0; part < W::kParts; ++part) {
      __builtin_prefetch(row + kPrefetchBytes +
                         part * (W::kBlockBytes / W::kParts));
      typename V::F w[Bound(W::kVecs)];
      W::Decode(row, shared, part, w);
      for (int v = 0; v < W::kVecs; ++v) {
        V::Store(out + (part * W::kVecs + v) * 16, w[v]);
      }
    }
    row += W::kBlockBytes;
    out += kBlock;
  }
  if constexpr (kBlock == 16) {
    if (k % 16 != 0) V::Store(out, DecodeTail<V, W>(row, k % 16));
  }
}

// A slice of k, a multiple of 16, of four weight rows and some activation rows.
struct TileArgs {
  const float* w[4];
  const float* x;
  int64_t x_stride;
  int64_t k;
  bool first;    // start from zero, not from `lanes`
  float* lanes;  // [4, kTileRows, 16], in and out
};

// One register of lanes of a tile: kX activation rows.
template <class V, int kX>
HX_INLINE void TileLanes(const TileArgs& t, int lane) {
  typename V::N acc[Bound(kX)][4];
  const auto at = [&](int x, int w) {
    return t.lanes + (w * kTileRows + x) * 16 + lane;
  };
#pragma GCC unroll 8
  for (int x = 0; x < kX; ++x) {
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) {
      acc[x][w] = t.first ? V::NativeSet(0.0f) : V::NativeLoad(at(x, w));
    }
  }
  for (int64_t k = lane; k < t.k; k += 16) {
    typename V::N w_vec[4];
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) w_vec[w] = V::NativeLoad(t.w[w] + k);
#pragma GCC unroll 8
    for (int x = 0; x < kX; ++x) {
      const auto x_vec = V::NativeLoad(t.x + x * t.x_stride + k);
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) {
        acc[x][w] = V::NativeFma(x_vec, w_vec[w], acc[x][w]);
      }
    }
  }
#pragma GCC unroll 8
  for (int x = 0; x < kX; ++x) {
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) V::NativeStore(at(x, w), acc[x][w]);
  }
}

template <class V, int kX>
void Tile(const TileArgs& args) {
  for (int lane = 0; lane < 16; lane += V::kNative) {
    TileLanes<V, kX>(args, lane);
  }
}

// The tile function for 1..kTileRows activation rows.
using TileFn = void (*)(const TileArgs&);
template <class V>
TileFn FindTile(int64_t x_rows) {
  static constexpr TileFn kTiles[] = {Tile<V, 1>, Tile<V, 2>, Tile<V, 3>,
                                      Tile<V, 4>, Tile<V, 5>, Tile<V, 6>};
  return kTiles[x_rows - 1];
}

// Rows of a panel and activation rows: a block of them.
struct Block {
  const MatMulArgs& args;
  const Panel& panel;
  int64_t row;     // first activation row
  int64_t x_rows;  // up to kTileRows
  float* lanes;    // [panel rows, kTileRows, 16]
};
constexpr int64_t kRowLanes = kTileRows * 16;  // of a row of the panel

// Multiplies a slice of k of four weight rows and all activation rows.
template <class V>
HX_INLINE void AddSlice(const Block& block, int64_t w, int64_t k,
                        int64_t size) {
  const MatMulArgs& args = block.args;
  const Panel& panel = block.panel;
  TileArgs t = {};
  for (int64_t i = 0; i < 4; ++i) {
    t.w[i] = panel.w + Smaller(w + i, panel.rows - 1) * panel.stride + k;
  }
  t.x_stride = args.x_stride;
  t.k = size;
  t.first = k == 0;
  for (int64_t x = 0; x < block.x_rows; x += V::kTileRows) {
    t.x = args.x + (block.row + x) * args.x_stride + k;
    t.lanes = block.lanes + w * kRowLanes + x * 16;
    FindTile<V>(Smaller(V::kTileRows, block.x_rows - x))(t);
  }
}

// The last args.k % 16 elements, from k on.
template <class V>
void AddTail(const Block& block, int64_t w_row, int64_t k) {
  const MatMulArgs& args = block.args;
  const int64_t size = args.k - k;
  const auto w =
      V::LoadPartial(block.panel.w + w_row * block.panel.stride + k, size);
  for (int64_t x = 0; x < block.x_rows; ++x) {
    float* lanes = block.lanes + w_row * kRowLanes + x * 16;
    const float* at = args.x + (block.row + x) * args.x_stride + k;
    V::Store(lanes, V::Fma(V::LoadPartial(at, size), w, V::Load(lanes)));
  }
}

// Adds the lanes of four weight rows.
template <class V>
HX_INLINE void AddLanesOf(const Block& block, int64_t w,
                          float (*sums)[kMaxPanelRows]) {
  for (int64_t x = 0; x < block.x_rows; ++x) {
    const float* at = block.lanes + w * kRowLanes + x * 16;
    V::AddLanes4({V::Load(at), V::Load(at + kRowLanes),
                  V::Load(at + 2 * kRowLanes), V::Load(at + 3 * kRowLanes)},
                 sums[x] + w);
  }
}

// Elements of k per slice, a multiple of 16: equal slices of at most 576, so
// that the activations (<= 14 KiB), four weight rows (<= 9 KiB) and their lanes
// stay in the L1 cache while the panel streams from L2.
HX_INLINE int64_t SliceSize(int64_t k) {
  const int64_t slices = (k + 575) / 576;
  return PaddedK((k + slices - 1) / (slices > 0 ? slices : 1));
}

// Writes the outputs of a block. Lanes are added as soon as they are complete.
template <class V>
void MultiplyBlock(const Block& block) {
  const MatMulArgs& args = block.args;
  const int64_t rows = block.panel.rows;
  const int64_t whole = args.k / 16 * 16;
  const int64_t slice = SliceSize(args.k);
  float sums[kTileRows][kMaxPanelRows];
  for (int64_t k = 0; k < whole || k == 0; k += slice) {
    const bool last = k + slice >= whole;
    for (int64_t w = 0; w < rows; w += 4) {
      AddSlice<V>(block, w, k, Smaller(slice, whole - k));
      if (!last) continue;
      if (whole < args.k) {
        for (int64_t i = w; i < Smaller(w + 4, rows); ++i) {
          AddTail<V>(block, i, whole);
        }
      }
      AddLanesOf<V>(block, w, sums);
    }
  }
  for (int64_t x = 0; x < block.x_rows; ++x) {
    FinishRow<V>(args, block.row + x, block.panel.n, sums[x], rows);
  }
}

template <class V>
void MultiplyPanel(const MatMulArgs& args, const Panel& panel, float* lanes) {
  for (int64_t r = 0; r < args.rows; r += kTileRows) {
    MultiplyBlock<V>(
        {args, panel, r, Smaller(kTileRows, args.rows - r), lanes});
  }
}

// Weights of type W are already floats.
template <class W>
constexpr bool kInPlace = W::kBlockBytes == 64 && W::kVecs == 1;

template <class V, class W>
void MatMulPanels(const MatMulArgs& args) {
  const int64_t panel_rows = PanelRows(args.k);
  const int64_t stride = PaddedK(args.k);
  float* decoded = args.scratch;
  float* lanes = decoded + panel_rows * stride;
  for (int64_t n = args.n_begin; n < args.n_end; n += panel_rows) {
    Panel panel = {decoded, stride, n, Smaller(panel_rows, args.n_end - n)};
    if constexpr (kInPlace<W>) {
      panel.w = reinterpret_cast<const float*>(WeightRow(args, n));
      panel.stride = args.w_row_bytes / 4;
    } else {
      for (int64_t i = 0; i < panel.rows; ++i) {
        DecodeRow<V, W>(WeightRow(args, n + i), args.k, decoded + i * stride);
      }
    }
    MultiplyPanel<V>(args, panel, lanes);
  }
}

template <class V, class W>
void MatMul(const MatMulArgs& args) {
  if (args.rows == 1) return MatMulDirect<V, W, 1>(args);
  if constexpr (V::kDirectRows == 4) {
    if (args.rows == 2) return MatMulDirect<V, W, 2>(args);
    if (args.rows == 3) return MatMulDirect<V, W, 3>(args);
    if (args.rows == 4) return MatMulDirect<V, W, 4>(args);
  } else {
    static_assert(V::kDirectRows == 1);
  }
  MatMulPanels<V, W>(args);
}

}  // namespace
}  // namespace hexllm::cpu

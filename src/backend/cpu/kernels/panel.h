// Layout of the scratch of matmul (a panel of decoded weight rows,
// partial sums) and attention (scores). Shared by the table, which
// tells the sizes, and the kernels, which fill it.
#pragma once

#include <stdint.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

// Decoded rows are padded with zeros to whole vectors of 16.
HX_INLINE int64_t PaddedK(int64_t k) { return (k + 15) / 16 * 16; }

// The greatest tile of any instruction set (V::kTileRows, kColumns).
constexpr int64_t kMostTileRows = 12;
constexpr int64_t kMostColumns = 32;

// A panel is about 256 KiB (it stays in the L2 cache, beside a block of
// activations) and a multiple of the columns of a tile.
constexpr int64_t kMaxPanelRows = 64;
HX_INLINE int64_t PanelRows(int64_t k, int64_t columns) {
  const int64_t padded = PaddedK(k) > 0 ? PaddedK(k) : 16;
  const int64_t rows = 65536 / padded / columns * columns;
  return rows < columns ? columns : rows > kMaxPanelRows ? kMaxPanelRows : rows;
}

// Elements of k per slice, a multiple of 16: equal slices of at most 576, so
// that a slice of a tile's activations stays in the L1 cache while the panel
// streams from L2.
HX_INLINE int64_t SliceSize(int64_t k) {
  const int64_t slices = (k + 575) / 576;
  return PaddedK((k + slices - 1) / (slices > 0 ? slices : 1));
}

// The longest block of weights, in elements.
constexpr int64_t kMostBlock = 256;

// All of it, in floats, whatever the instruction set.
HX_INLINE int64_t MatMulScratch(int64_t k) {
  const int64_t rows = PanelRows(k, kMostColumns);
  const int64_t narrow = PanelRows(k, 16);
  return (rows > narrow ? rows : narrow) * PaddedK(k) +
         16 * kMostTileRows * kMostColumns + kMostColumns * kMostBlock;
}

// Scores of one head: kernels write whole tiles of columns past the last one.
constexpr int64_t kScoreSlack = 128;
HX_INLINE int64_t ScoreStride(int64_t columns) {
  return PaddedK(columns) + kScoreSlack;
}

}  // namespace
}  // namespace hexllm::cpu

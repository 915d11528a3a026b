// Layout of the scratch of matmul (a panel of decoded weight rows, its partial
// sums) and attention (scores). Shared by the table, which tells the sizes, and
// the kernels, which fill it.
#pragma once

#include <stdint.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

// Decoded rows are padded with zeros to whole vectors of 16.
HX_INLINE int64_t PaddedK(int64_t k) { return (k + 15) / 16 * 16; }

// A panel is at most 256 KiB (it stays in the L2 cache, beside a block of
// activations) and a multiple of the four rows that a tile takes.
constexpr int64_t kMaxPanelRows = 64;
HX_INLINE int64_t PanelRows(int64_t k) {
  const int64_t rows = 65536 / (PaddedK(k) > 0 ? PaddedK(k) : 16) / 4 * 4;
  return rows < 4 ? 4 : rows > kMaxPanelRows ? kMaxPanelRows : rows;
}

// Partial sums of one block of activation rows against a panel: [rows of the
// panel][kTileRows][16 lanes].
constexpr int64_t kTileRows = 6;
HX_INLINE int64_t PanelLanes(int64_t k) {
  return PanelRows(k) * kTileRows * 16;
}

// Scores of one head: kernels write whole tiles of columns past the last one.
constexpr int64_t kScoreSlack = 128;
HX_INLINE int64_t ScoreStride(int64_t columns) {
  return PaddedK(columns) + kScoreSlack;
}

}  // namespace
}  // namespace hexllm::cpu

// Rows of a weight, a few at a time and on all threads. Part of
// quant/weight_search.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/float4.h"
#include "base/thread_pool.h"
#include "ir/constant.h"
#include "quant/row_stats.h"

namespace hexllm::quant {

// Rows from `first` on.
struct WeightTile {
  int64_t first;
  int64_t rows;
  int64_t width;
  std::vector<float> values;  // [rows, width]

  std::span<const float> Row(int64_t i) const {
    return std::span(values).subspan(static_cast<size_t>(i * width),
                                     static_cast<size_t>(width));
  }
};

// Calls visit(const WeightTile&) for tiles of at most `most` rows that are all
// of `weight` together, from several threads.
template <typename Visit>
void ForEachTile(const ir::Constant& weight, int64_t most, ThreadPool& pool,
                 const Visit& visit) {
  const int64_t rows = ir::NumRows(weight);
  pool.ParallelFor(
      (rows + most - 1) / most, 1, [&](int64_t begin, int64_t end) {
        WeightTile tile{
            .first = 0, .rows = 0, .width = ir::RowElems(weight), .values = {}};
        for (int64_t i = begin; i < end; ++i) {
          tile.first = i * most;
          tile.rows = std::min(most, rows - tile.first);
          tile.values.resize(static_cast<size_t>(tile.rows * tile.width));
          for (int64_t r = 0; r < tile.rows; ++r) {
            ir::ReadRow(weight, tile.first + r,
                        std::span(tile.values)
                            .subspan(static_cast<size_t>(r * tile.width),
                                     static_cast<size_t>(tile.width)));
          }
          visit(tile);
        }
      });
}

// out = clamp(rint(x / scale), -most, most) * scale - x, but for ties.
inline void RoundingErrors(std::span<const float> values, SymmetricGrid grid,
                           std::span<float> out) {
  const float inverse = 1 / grid.scale;
  size_t i = 0;
  for (; i + 4 <= values.size(); i += 4) {
    const Float4 x = Load4(&values[i]);
    const Float4 code = RoundEven4(
        Min4(Max4(x * Splat4(inverse), Splat4(-grid.most)), Splat4(grid.most)));
    Store4(code * Splat4(grid.scale) - x, &out[i]);
  }
  for (; i < values.size(); ++i) {
    const float code =
        std::nearbyint(std::clamp(values[i] * inverse, -grid.most, grid.most));
    out[i] = code * grid.scale - values[i];
  }
}

}  // namespace hexllm::quant

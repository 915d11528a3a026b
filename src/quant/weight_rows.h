// Reading a weight row by row, each row checked. Part of
// quant/weight_encoding.h.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/constant.h"
#include "quant/row_stats.h"

namespace hexllm::quant {

// One row: its floats and the greatest magnitude among them.
struct WeightRow {
  int64_t index;
  std::span<const float> values;
  float magnitude;
};

// kBadInput naming tensor, row and column of the first number of the row that
// is NaN, infinite or beyond `most`.
Error UnfitNumber(const ir::Constant& weight, const WeightRow& row, float most);

// Calls visit(row) for each row in order; its `values` live until visit
// returns. UnfitNumber's error at the first row with a magnitude above `most`.
template <typename Visit>
Status VisitRows(const ir::Constant& weight, float most, Visit visit) {
  std::vector<float> buffer(static_cast<size_t>(ir::RowElems(weight)));
  const int64_t rows = ir::NumRows(weight);
  for (int64_t i = 0; i < rows; ++i) {
    ir::ReadRow(weight, i, buffer);
    const WeightRow row = {i, buffer, Magnitude(buffer)};
    // NaN compares false.
    if (!(row.magnitude <= most)) return UnfitNumber(weight, row, most);
    visit(row);
  }
  return OkStatus();
}

}  // namespace hexllm::quant

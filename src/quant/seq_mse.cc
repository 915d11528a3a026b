#include "quant/seq_mse.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/encode.h"
#include "quant/range.h"
#include "quant/weight_tiles.h"

namespace hexllm::quant {
namespace {

// Floats of rounding errors that a thread keeps at once.
constexpr int64_t kMostErrors = int64_t{1} << 21;

float CandidateOf(float widest, int candidate, int candidates) {
  return std::max(ShrunkScale(widest, candidate, candidates), LeastScale(16));
}

size_t BestOf(std::span<const double> errors) {
  return static_cast<size_t>(std::ranges::min_element(errors) - errors.begin());
}

}  // namespace

ir::Encoding SearchScales(const ir::Constant& weight, InputMoments& inputs,
                          int candidates, ir::Encoding encoding) {
  inputs.PrepareErrors();
  const std::vector<float> widest = encoding.scales;
  const auto count = static_cast<size_t>(candidates);
  const auto most = static_cast<float>(ir::CodesOf(encoding).most);
  const auto width = static_cast<size_t>(inputs.width());
  std::vector<double> errors(static_cast<size_t>(ir::NumRows(weight)) * count);
  const int64_t rows =
      std::max<int64_t>(1, kMostErrors / (candidates * inputs.width()));
  ForEachTile(weight, rows, inputs.context().pool, [&](const WeightTile& tile) {
    std::vector<float> rounding(static_cast<size_t>(tile.rows) * count * width);
    for (int64_t r = 0; r < tile.rows; ++r) {
      const auto row = static_cast<size_t>(tile.first + r);
      for (size_t c = 0; c < count; ++c) {
        const float scale = CandidateOf(widest[encoding.axis < 0 ? 0 : row],
                                        static_cast<int>(c), candidates);
        const size_t at = static_cast<size_t>(r) * count + c;
        RoundingErrors(tile.Row(r), {scale, most},
                       std::span(rounding).subspan(at * width, width));
      }
    }
    std::ranges::copy(inputs.Errors(rounding),
                      errors.begin() + tile.first * candidates);
  });
  if (encoding.axis < 0) {
    for (size_t i = count; i < errors.size(); ++i)
      errors[i % count] += errors[i];
    errors.resize(count);
  }
  for (size_t row = 0; row < widest.size(); ++row) {
    const size_t best = BestOf(std::span(errors).subspan(row * count, count));
    encoding.scales[row] =
        CandidateOf(widest[row], static_cast<int>(best), candidates);
  }
  return encoding;
}

}  // namespace hexllm::quant

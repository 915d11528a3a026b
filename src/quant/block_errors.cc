#include "quant/block_errors.h"

#include <algorithm>

#include "base/check.h"

namespace hexllm::quant {
namespace {

constexpr size_t kMostBlock = 64;
constexpr float kMost = 7;

using Changes = std::array<FactorLanes, kMostBlock>;

FactorLanes FactorScales(float scale) {
  FactorLanes scales;
  for (size_t v = 0; v < scales.size(); ++v) {
    for (size_t i = 0; i < 4; ++i)
      scales[v][i] = static_cast<float>(4 * v + i + 1) * scale;
  }
  return scales;
}

// What each factor would add to the errors.
void FillChanges(const BlockView& block, float scale, Changes& changes) {
  const FactorLanes scales = FactorScales(scale);
  FactorLanes inverses;
  for (size_t v = 0; v < scales.size(); ++v)
    inverses[v] = Splat4(1) / scales[v];
  for (size_t i = 0; i < block.weights.size(); ++i) {
    const Float4 x = Splat4(block.weights[i]);
    const Float4 present = Splat4(block.weights[i] + block.errors[i]);
    for (size_t v = 0; v < scales.size(); ++v) {
      const Float4 code = RoundEven4(
          Min4(Max4(x * inverses[v], Splat4(-kMost)), Splat4(kMost)));
      changes[i][v] = code * scales[v] - present;
    }
  }
}

}  // namespace

FactorChoice BestFactor(const BlockView& block, float scale) {
  const size_t size = block.weights.size();
  HX_CHECK(size <= kMostBlock);
  Changes changes;
  FillChanges(block, scale, changes);
  FactorLanes sums{};
  for (size_t i = 0; i < size; ++i) {
    const float* row = block.gram + static_cast<int64_t>(i) * block.gram_stride;
    // c G c + 2 c g, where G is symmetric.
    FactorLanes products;
    products.fill(Splat4(2 * block.gradient[i]));
    for (size_t v = 0; v < products.size(); ++v)
      products[v] += Splat4(row[i]) * changes[i][v];
    for (size_t j = 0; j < i; ++j) {
      const Float4 twice = Splat4(2 * row[j]);
      for (size_t v = 0; v < products.size(); ++v)
        products[v] += twice * changes[j][v];
    }
    for (size_t v = 0; v < sums.size(); ++v)
      sums[v] += products[v] * changes[i][v];
  }
  FactorChoice best{.factor = 1, .change = sums[0][0]};
  for (size_t f = 1; f < kBlockSteps; ++f) {
    const float change = sums[f / 4][f % 4];
    if (change < best.change)
      best = {.factor = static_cast<uint8_t>(f + 1), .change = change};
  }
  return best;
}

}  // namespace hexllm::quant

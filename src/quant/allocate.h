// The multiple-choice knapsack: of each of many groups one alternative, so that
// the costs stay within a budget and the losses are as small as they can be.
// Used by the recipe search, where groups are layers, alternatives ways to
// quantize them, costs bytes or microseconds and losses what they do to the
// output. Pure arithmetic: it knows none of that.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace hexllm::quant {

// Finite; cost and loss are not negative.
struct Alternative {
  double cost = 0;
  double loss = 0;
};

// Index of the alternative of each group, and their sums.
struct Allocation {
  std::vector<size_t> chosen;
  double cost = 0;
  double loss = 0;
};

// The sum of each group's cheapest alternative.
double LeastCost(std::span<const std::vector<Alternative>> groups);

// The best allocation for each of `budgets`, or nothing for one below
// LeastCost. No group is empty (checked). Dynamic programming over costs in
// cells of their greatest common divisor (Kellerer, Pferschy, Pisinger,
// "Knapsack Problems", 2004, chapter 11): exact for costs that are whole
// numbers and need at most kMostCells cells. Others are rounded up to as many
// cells, so that a budget is kept all the same, and what that leaves is spent
// on single changes. Groups * cells bytes of memory.
std::vector<std::optional<Allocation>> Allocate(
    std::span<const std::vector<Alternative>> groups,
    std::span<const double> budgets);
inline constexpr size_t kMostCells = size_t{1} << 16;

}  // namespace hexllm::quant

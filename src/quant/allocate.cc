#include "quant/allocate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace hexllm::quant {
namespace {

using Groups = std::span<const std::vector<Alternative>>;

// Whole numbers up to here are exact in double, and so are their sums.
constexpr double kMostWhole = 1e15;

double CheapestOf(const std::vector<Alternative>& group) {
  HX_CHECK(!group.empty() && group.size() <= UINT8_MAX);
  return std::min_element(group.begin(), group.end(),
                          [](const Alternative& a, const Alternative& b) {
                            return a.cost < b.cost;
                          })
      ->cost;
}

// What all costs above the cheapest of their group are multiples of; 0 when
// they are no whole numbers, or all equal.
double CommonDivisor(Groups groups) {
  int64_t divisor = 0;
  for (const auto& group : groups) {
    const double least = CheapestOf(group);
    for (const Alternative& one : group) {
      const double extra = one.cost - least;
      if (extra != std::floor(extra) || one.cost > kMostWhole) return 0;
      divisor = std::gcd(divisor, static_cast<int64_t>(extra));
    }
  }
  return static_cast<double>(divisor);
}

// The table of the dynamic programme: for each group and number of cells, which
// alternative the best allocation of the groups so far has.
class Table {
 public:
  Table(Groups groups, double most_extra) : groups_(groups) {
    const double divisor = CommonDivisor(groups);
    cell_ = std::max(divisor, most_extra / static_cast<double>(kMostCells));
    if (!(cell_ > 0)) cell_ = 1;
    cells_ = static_cast<size_t>(most_extra / cell_);
    std::vector<double> best(cells_ + 1, 0.0);
    for (const auto& group : groups) best = Extend(group, best);
  }

  Allocation Trace(double extra) const {
    Allocation result{.chosen = std::vector<size_t>(groups_.size())};
    size_t at = std::min(cells_, static_cast<size_t>(extra / cell_));
    for (size_t g = groups_.size(); g-- > 0;) {
      const size_t chosen = chosen_[g * (cells_ + 1) + at];
      result.chosen[g] = chosen;
      at -= CellsOf(groups_[g], chosen);
    }
    return result;
  }

 private:
  size_t CellsOf(const std::vector<Alternative>& group, size_t index) const {
    const double extra = group[index].cost - CheapestOf(group);
    const double cells = std::ceil(extra / cell_);
    return cells > static_cast<double>(cells_) ? cells_ + 1
                                               : static_cast<size_t>(cells);
  }

  std::vector<double> Extend(const std::vector<Alternative>& group,
                             const std::vector<double>& before) {
    std::vector<double> best(cells_ + 1,
                             std::numeric_limits<double>::infinity());
    const size_t row = chosen_.size();
    chosen_.resize(row + cells_ + 1);
    for (size_t i = 0; i < group.size(); ++i) {
      for (size_t cell = CellsOf(group, i); cell <= cells_; ++cell) {
        const double loss = before[cell - CellsOf(group, i)] + group[i].loss;
        if (loss >= best[cell]) continue;
        best[cell] = loss;
        chosen_[row + cell] = static_cast<uint8_t>(i);
      }
    }
    return best;
  }

  Groups groups_;
  double cell_ = 1;
  size_t cells_ = 0;
  std::vector<uint8_t> chosen_;  // [groups, cells + 1]
};

void AddUp(Groups groups, Allocation& result) {
  result.cost = result.loss = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    result.cost += groups[g][result.chosen[g]].cost;
    result.loss += groups[g][result.chosen[g]].loss;
  }
}

// Makes the single change that takes most off the loss, as long as one fits.
void SpendRest(Groups groups, double budget, Allocation& result) {
  for (;;) {
    double most = 0;
    size_t group = 0, alternative = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      const Alternative& now = groups[g][result.chosen[g]];
      for (size_t i = 0; i < groups[g].size(); ++i) {
        const Alternative& other = groups[g][i];
        if (result.cost - now.cost + other.cost > budget) continue;
        if (now.loss - other.loss <= most) continue;
        most = now.loss - other.loss;
        group = g;
        alternative = i;
      }
    }
    if (most <= 0) return;
    result.chosen[group] = alternative;
    AddUp(groups, result);
  }
}

}  // namespace

double LeastCost(Groups groups) {
  double sum = 0;
  for (const auto& group : groups) sum += CheapestOf(group);
  return sum;
}

std::vector<std::optional<Allocation>> Allocate(
    Groups groups, std::span<const double> budgets) {
  const double least = LeastCost(groups);
  double most_cost = 0;
  for (const auto& group : groups) {
    double most = 0;
    for (const Alternative& one : group) most = std::max(most, one.cost);
    most_cost += most;
  }
  double most_extra = 0;
  for (const double budget : budgets)
    most_extra = std::max(most_extra, std::min(budget, most_cost) - least);
  const Table table(groups, most_extra);
  std::vector<std::optional<Allocation>> results;
  for (const double budget : budgets) {
    if (!(budget >= least)) {
      results.emplace_back();
      continue;
    }
    Allocation result = table.Trace(std::min(budget, most_cost) - least);
    AddUp(groups, result);
    SpendRest(groups, budget, result);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace hexllm::quant

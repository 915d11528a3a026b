#include "quant/allocate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/pseudo_random.h"

namespace hexllm::quant {
namespace {

using Groups = std::vector<std::vector<Alternative>>;

enum class Costs : uint8_t { kWhole, kReal };

Groups RandomGroups(ir::PseudoRandom& random, size_t count, Costs costs) {
  Groups groups(count);
  for (auto& group : groups) {
    const auto size = static_cast<size_t>(1 + 3.99 * random.Unit());
    for (size_t i = 0; i < size; ++i) {
      const double cost = 50 * static_cast<double>(random.Unit());
      group.push_back({costs == Costs::kWhole ? std::floor(cost) : cost,
                       static_cast<double>(random.Unit())});
    }
  }
  return groups;
}

// The least loss of all allocations within the budget.
double BruteForce(const Groups& groups, size_t group, double budget) {
  if (budget < 0) return INFINITY;
  if (group == groups.size()) return 0;
  double best = INFINITY;
  for (const Alternative& one : groups[group])
    best = std::min(
        best, one.loss + BruteForce(groups, group + 1, budget - one.cost));
  return best;
}

TEST(AllocateTest, IsAsGoodAsBruteForce) {
  ir::PseudoRandom random("allocate");
  for (int round = 0; round < 200; ++round) {
    const Groups groups =
        RandomGroups(random, 1 + static_cast<size_t>(round) % 6, Costs::kWhole);
    const double budget = std::floor(200 * static_cast<double>(random.Unit()));
    const double best = BruteForce(groups, 0, budget);
    const auto found = Allocate(groups, {&budget, 1})[0];
    ASSERT_EQ(found.has_value(), std::isfinite(best));
    if (found) {
      EXPECT_NEAR(found->loss, best, 1e-12) << round;
    }
  }
}

TEST(AllocateTest, KeepsEveryBudget) {
  ir::PseudoRandom random("budgets");
  for (const Costs costs : {Costs::kWhole, Costs::kReal}) {
    const Groups groups = RandomGroups(random, 40, costs);
    const double least = LeastCost(groups);
    std::vector<double> budgets = {least - 0.5, least};
    for (int i = 0; i < 30; ++i)
      budgets.push_back(least + 1500 * static_cast<double>(random.Unit()));
    std::sort(budgets.begin() + 2, budgets.end());
    const auto found = Allocate(groups, budgets);
    EXPECT_FALSE(found[0].has_value());
    double loss = INFINITY;
    for (size_t i = 1; i < budgets.size(); ++i) {
      ASSERT_TRUE(found[i].has_value());
      double cost = 0, sum = 0;
      for (size_t g = 0; g < groups.size(); ++g) {
        cost += groups[g].at(found[i]->chosen[g]).cost;
        sum += groups[g].at(found[i]->chosen[g]).loss;
      }
      EXPECT_LE(cost, budgets[i]);
      EXPECT_EQ(cost, found[i]->cost);
      EXPECT_EQ(sum, found[i]->loss);
      if (costs == Costs::kWhole) {
        EXPECT_LE(sum, loss + 1e-12);
      }
      loss = sum;
    }
  }
}

// More money than there is to spend buys the best of everything.
TEST(AllocateTest, SpendsNoMoreThanItHelps) {
  const Groups groups = {{{7, 1}, {3, 2}}, {{5, 0}, {9, 0.5}}};
  const double budgets[] = {8, 12, 1e9};
  const auto found = Allocate(groups, budgets);
  EXPECT_EQ(found[0]->chosen, (std::vector<size_t>{1, 0}));
  EXPECT_EQ(found[1]->chosen, (std::vector<size_t>{0, 0}));
  EXPECT_EQ(found[2]->cost, 12);
}

}  // namespace
}  // namespace hexllm::quant

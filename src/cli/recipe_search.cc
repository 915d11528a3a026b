#include "cli/recipe_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "cli/search_latency.h"
#include "cli/sensitivity.h"

namespace hexllm::cli {
namespace {

using quant::Allocation;
using quant::CostKind;

// Times that a budget of latency is aimed at anew, when the whole step is
// estimated to take longer than its layers' sum.
constexpr int kMostAims = 5;

class Search {
 public:
  Search(const SearchWish& wish, ProgressSink& progress)
      : wish_(wish), progress_(progress), latency_(wish) {}

  Result<SearchResult> Run() {
    if (InTime()) HX_RETURN_IF_ERROR(latency_.Check());
    HX_ASSIGN_OR_RETURN(
        result_.base,
        FindSearchBase(wish_.model, wish_.options, "recipe search", progress_));
    // Judging comes last, but what it lacks shall show at once.
    HX_ASSIGN_OR_RETURN(
        HeldOut held_out,
        HeldOut::Open(wish_.model, wish_.options, wish_.held_out, progress_));
    HX_ASSIGN_OR_RETURN(result_.layers,
                        MeasureSensitivities(wish_.model, wish_.options,
                                             result_.base.recipe, progress_));
    if (InTime()) {
      HX_ASSIGN_OR_RETURN(base_us_, latency_.Fill(result_.base.recipe,
                                                  result_.layers, progress_));
    }
    groups_ = quant::AlternativesOf(result_.layers, wish_.kind);
    HX_RETURN_IF_ERROR(AddPoints());
    HX_RETURN_IF_ERROR(MeasureAll(held_out));
    HX_RETURN_IF_ERROR(ChooseBest());
    return std::move(result_);
  }

 private:
  bool InTime() const { return wish_.kind == CostKind::kMicroseconds; }
  double BytesOf(const std::vector<size_t>& chosen) const;
  // What is no linear's: latencies are linears' alone.
  double FixedCost() const { return InTime() ? 0 : BytesOf({}); }
  double CostOf(const SearchPoint& point) const {
    return InTime() ? point.us : point.bytes;
  }
  Error OutOfReach(double least) const;

  Status AddPoints();
  Status AddFront(double least);
  // The point of the budget itself.
  Status AddAim(double least);
  Result<SearchPoint> MakePoint(std::string label,
                                const Allocation& allocation) const;
  void Keep(SearchPoint point);
  // Replaces the point's latency by the whole step's.
  Status Estimate(SearchPoint& point) const;
  std::optional<Allocation> BestUniform() const;
  Status MeasureAll(HeldOut& held_out);
  Status ChooseBest();

  const SearchWish& wish_;
  ProgressSink& progress_;
  SearchLatency latency_;
  SearchResult result_;
  double base_us_ = 0;
  std::vector<std::vector<quant::Alternative>> groups_;
};

// Of all weights; with nothing chosen, of what is no linear's.
double Search::BytesOf(const std::vector<size_t>& chosen) const {
  double bytes = static_cast<double>(result_.base.weight_bytes) -
                 quant::BaseAllocation(result_.layers, CostKind::kBytes).cost;
  for (size_t i = 0; i < chosen.size(); ++i)
    bytes += static_cast<double>(result_.layers[i].ways[chosen[i]].bytes);
  return bytes;
}

// The number is rounded up: it can be had.
Error Search::OutOfReach(double least) const {
  const auto message = [&](const char* flag, const char* unit, double scale) {
    return fmt::format(
        "{}: expected at least {:.4f}, the fewest {} that {} can be quantized "
        "to with this recipe's activations, found {:g}",
        flag, std::ceil(least / scale * 1e4) / 1e4, unit, wish_.model,
        wish_.budget / scale);
  };
  return {ErrorCode::kUsage,
          InTime() ? message("--budget-ms", "milliseconds", 1e3)
                   : message("--budget-mb", "MB of weights", 1e6)};
}

Result<SearchPoint> Search::MakePoint(std::string label,
                                      const Allocation& allocation) const {
  HX_ASSIGN_OR_RETURN(
      quant::Recipe recipe,
      quant::RecipeOf(result_.base.recipe, result_.layers, allocation.chosen));
  const double bytes = BytesOf(allocation.chosen);
  recipe.name =
      fmt::format("{}_{:.1f}mb", result_.base.recipe.name, bytes / 1e6);
  recipe.description = fmt::format(
      "Found by `hexllm recipe search`, beginning with {}: {:.0f} bytes of "
      "weights.",
      result_.base.recipe.name, bytes);
  return SearchPoint{.label = std::move(label),
                     .recipe = std::move(recipe),
                     .chosen = allocation.chosen,
                     .bytes = bytes,
                     .us = InTime() ? allocation.cost : 0,
                     .predicted_kld = allocation.loss};
}

void Search::Keep(SearchPoint point) {
  for (SearchPoint& other : result_.points) {
    if (other.chosen != point.chosen) continue;
    if (!other.estimated) {
      other.us = point.us;
      other.estimated = point.estimated;
    }
    return;
  }
  result_.points.push_back(std::move(point));
}

Status Search::Estimate(SearchPoint& point) const {
  HX_ASSIGN_OR_RETURN(point.us, latency_.WholeStep(point.recipe, progress_));
  point.estimated = true;
  return OkStatus();
}

// All layers alike, where they can be.
std::optional<Allocation> Search::BestUniform() const {
  std::optional<Allocation> best;
  for (const quant::LayerWay& way : result_.layers.front().ways) {
    Allocation uniform;
    for (size_t i = 0; i < result_.layers.size(); ++i) {
      const auto& ways = result_.layers[i].ways;
      const auto found =
          std::ranges::find(ways, way.settings, &quant::LayerWay::settings);
      if (found == ways.end()) break;
      const auto chosen = static_cast<size_t>(found - ways.begin());
      uniform.chosen.push_back(chosen);
      uniform.cost += groups_[i][chosen].cost;
      uniform.loss += groups_[i][chosen].loss;
    }
    if (uniform.chosen.size() < groups_.size() ||
        uniform.cost + FixedCost() > wish_.budget) {
      continue;
    }
    if (!best || uniform.loss < best->loss) best = std::move(uniform);
  }
  return best;
}

Status Search::AddAim(double least) {
  double aim = wish_.budget - FixedCost();
  for (int i = 0; i < kMostAims; ++i) {
    aim = std::max(aim, least);
    const auto allocation = quant::Allocate(groups_, {&aim, 1})[0];
    HX_ASSIGN_OR_RETURN(SearchPoint point, MakePoint("front", *allocation));
    if (InTime()) HX_RETURN_IF_ERROR(Estimate(point));
    const double cost = CostOf(point);
    const bool fits = cost <= wish_.budget;
    if (!fits && aim == least) return OutOfReach(cost);
    // The last aim is the safest one.
    aim = i + 2 == kMostAims ? least : aim * 0.998 * wish_.budget / cost;
    Keep(std::move(point));
    if (fits) return OkStatus();
  }
  return OkStatus();
}

Status Search::AddFront(double least) {
  double most = 0;
  for (const auto& group : groups_)
    most +=
        std::ranges::max_element(group, {}, &quant::Alternative::cost)->cost;
  std::vector<double> budgets;
  const auto steps = static_cast<double>(std::max<size_t>(2, wish_.points) - 1);
  for (size_t i = 0; i < wish_.points; ++i)
    budgets.push_back(least + (most - least) * static_cast<double>(i) / steps);
  for (const auto& allocation : quant::Allocate(groups_, budgets)) {
    HX_ASSIGN_OR_RETURN(SearchPoint point, MakePoint("front", *allocation));
    Keep(std::move(point));
  }
  return OkStatus();
}

Status Search::AddPoints() {
  const double least = quant::LeastCost(groups_);
  if (!InTime() && wish_.budget < FixedCost() + least)
    return OutOfReach(FixedCost() + least);
  HX_RETURN_IF_ERROR(AddAim(least));
  HX_ASSIGN_OR_RETURN(
      SearchPoint base,
      MakePoint("base", quant::BaseAllocation(result_.layers, wish_.kind)));
  base.recipe = result_.base.recipe;
  base.us = base_us_;
  base.estimated = InTime();
  Keep(std::move(base));
  if (const auto uniform = BestUniform()) {
    HX_ASSIGN_OR_RETURN(SearchPoint point, MakePoint("uniform", *uniform));
    if (InTime()) HX_RETURN_IF_ERROR(Estimate(point));
    Keep(std::move(point));
  }
  HX_RETURN_IF_ERROR(AddFront(least));
  std::ranges::sort(result_.points, {},
                    [this](const SearchPoint& point) { return CostOf(point); });
  return OkStatus();
}

Status Search::MeasureAll(HeldOut& held_out) {
  result_.float_perplexity = held_out.float_perplexity();
  result_.held_out_tokens = held_out.tokens();
  for (SearchPoint& point : result_.points) {
    HX_ASSIGN_OR_RETURN(point.measured,
                        held_out.Measure(point.recipe, progress_));
  }
  return OkStatus();
}

Status Search::ChooseBest() {
  std::optional<size_t> best;
  for (size_t i = 0; i < result_.points.size(); ++i) {
    const SearchPoint& point = result_.points[i];
    if (CostOf(point) > wish_.budget || (InTime() && !point.estimated))
      continue;
    if (!best ||
        point.measured.mean_kld < result_.points[*best].measured.mean_kld)
      best = i;
  }
  HX_CHECK(best.has_value());  // the budget's own
  result_.best = *best;
  const SearchPoint& chosen = result_.points[*best];
  HX_ASSIGN_OR_RETURN(
      const uint64_t bytes,
      WeightBytesWith(wish_.model, wish_.options, chosen.recipe));
  // The sums of layers are the artifact's size.
  HX_CHECK(static_cast<double>(bytes) == chosen.bytes);
  return OkStatus();
}

}  // namespace

Result<SearchResult> SearchRecipe(const SearchWish& wish,
                                  ProgressSink& progress) {
  return Search(wish, progress).Run();
}

}  // namespace hexllm::cli

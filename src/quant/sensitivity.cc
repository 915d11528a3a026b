#include "quant/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace hexllm::quant {
namespace {

constexpr double kMostDb = 200;
// The share of the base's loss that a smaller recipe may have: predictions err.
constexpr double kSmallerLoss = 0.9;

// Static, of the base's activations, or another width of its weights.
std::vector<const Scheme*> SchemesFor(const Scheme& base) {
  std::vector<const Scheme*> schemes;
  for (const Scheme& scheme : AllSchemes()) {
    if (scheme.activations == ActivationKind::kStatic &&
        scheme.activation_bits == base.activation_bits &&
        scheme.weight_bits <= 8)
      schemes.push_back(&scheme);
  }
  return schemes;
}

// "16a8w", "16a4w_block/32".
std::string WayName(const LayerSettings& settings) {
  std::string name(settings.scheme->name);
  if (settings.scheme->block) name += fmt::format("/{}", settings.block);
  return name;
}

Allocation AddUp(std::span<const std::vector<Alternative>> groups,
                 std::vector<size_t> chosen) {
  Allocation result{.chosen = std::move(chosen)};
  for (size_t g = 0; g < groups.size(); ++g) {
    result.cost += groups[g][result.chosen[g]].cost;
    result.loss += groups[g][result.chosen[g]].loss;
  }
  return result;
}

// The fewest bytes at a loss of at most `most`.
std::optional<Allocation> Cheapest(
    std::span<const std::vector<Alternative>> groups, double most) {
  std::vector<std::vector<Alternative>> swapped(groups.begin(), groups.end());
  for (auto& group : swapped) {
    for (Alternative& one : group) std::swap(one.cost, one.loss);
  }
  auto found = Allocate(swapped, {&most, 1})[0];
  if (found) std::swap(found->cost, found->loss);
  return found;
}

}  // namespace

std::vector<LayerSettings> WaysFor(const LayerSettings& base, int64_t inputs) {
  std::vector<LayerSettings> ways = {base};
  if (base.scheme->activations != ActivationKind::kStatic) return ways;
  const auto add = [&](LayerSettings settings) {
    if (std::ranges::find(ways, settings) == ways.end())
      ways.push_back(settings);
  };
  for (const Scheme* scheme : SchemesFor(*base.scheme)) {
    for (const int block : kBlocks) {
      if (scheme->block && inputs % block != 0) continue;
      for (const auto observer :
           {base.weight_observer, WeightObserverKind::kMse}) {
        LayerSettings way = base;
        way.scheme = scheme;
        if (scheme->block) way.block = block;
        way.granularity = WeightGranularity::kPerChannel;
        way.weight_observer = observer;
        add(way);
      }
    }
  }
  return ways;
}

size_t ProbedWay(std::span<const LayerSettings> ways) {
  if (ways.front().scheme->weight_bits == 4) return 0;
  const auto blocks = std::ranges::find_if(
      ways, [](const LayerSettings& way) { return way.scheme->block; });
  const auto four = std::ranges::find_if(ways, [](const LayerSettings& way) {
    return way.scheme->weight_bits == 4;
  });
  const auto found = blocks != ways.end() ? blocks : four;
  return found == ways.end() ? 0 : static_cast<size_t>(found - ways.begin());
}

double LossOf(const LayerSensitivity& layer, size_t way) {
  const double probed = layer.ways.at(layer.probed).noise;
  if (!(probed > 0)) return 0;
  return layer.kld * layer.ways.at(way).noise / probed;
}

double SqnrOf(const LayerWay& way) {
  if (!(way.noise > 0)) return kMostDb;
  return std::clamp(-10 * std::log10(way.noise), -kMostDb, kMostDb);
}

std::vector<std::vector<Alternative>> AlternativesOf(
    std::span<const LayerSensitivity> layers, CostKind kind) {
  std::vector<std::vector<Alternative>> groups;
  for (const LayerSensitivity& layer : layers) {
    auto& group = groups.emplace_back();
    for (size_t way = 0; way < layer.ways.size(); ++way) {
      const LayerWay& one = layer.ways[way];
      group.push_back({.cost = kind == CostKind::kBytes
                                   ? static_cast<double>(one.bytes)
                                   : one.us,
                       .loss = LossOf(layer, way)});
    }
  }
  return groups;
}

Allocation BaseAllocation(std::span<const LayerSensitivity> layers,
                          CostKind kind) {
  std::vector<size_t> chosen;
  for (const LayerSensitivity& layer : layers) chosen.push_back(layer.base);
  return AddUp(AlternativesOf(layers, kind), std::move(chosen));
}

Result<Recipe> RecipeOf(const Recipe& base,
                        std::span<const LayerSensitivity> layers,
                        std::span<const size_t> chosen) {
  HX_CHECK(layers.size() == chosen.size());
  std::vector<LayerWish> wishes;
  for (size_t i = 0; i < layers.size(); ++i)
    wishes.push_back({layers[i].layer, layers[i].ways.at(chosen[i]).settings});
  return ComposeRecipe(base, wishes);
}

std::vector<Suggestion> Suggest(std::span<const LayerSensitivity> layers) {
  const auto groups = AlternativesOf(layers, CostKind::kBytes);
  const Allocation base = BaseAllocation(layers, CostKind::kBytes);
  std::vector<Suggestion> suggestions;
  const auto [smaller_name, equal_name, larger_name] = kSuggestionNames;
  const auto add = [&](std::string_view name, std::string_view meaning,
                       std::optional<Allocation> found) {
    if (found && found->chosen != base.chosen)
      suggestions.push_back({name, meaning, std::move(*found)});
  };
  auto smaller = Cheapest(groups, kSmallerLoss * base.loss);
  if (smaller && smaller->cost >= base.cost) smaller.reset();
  add(smaller_name, "The fewest bytes at nine tenths of the loss of its base.",
      std::move(smaller));
  add(equal_name, "The least loss in no more bytes than its base.",
      Allocate(groups, {&base.cost, 1})[0]);
  add(larger_name, "The fewest bytes at half the loss of its base.",
      Cheapest(groups, base.loss / 2));
  return suggestions;
}

std::string SensitivityCsv(std::span<const LayerSensitivity> layers) {
  std::vector<size_t> order(layers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto loss = [&](size_t i) { return LossOf(layers[i], layers[i].base); };
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return loss(a) > loss(b); });
  double sum = 0;
  for (const size_t i : order) sum += loss(i);
  std::string csv =
      "group_name,scheme,weight_bytes,sqnr_db,kl_nats,kl_share,measured_as\n";
  for (const size_t i : order) {
    const LayerWay& base = layers[i].ways.at(layers[i].base);
    csv += fmt::format("{},{},{},{:.3f},{:.6g},{:.4f},{}\n",
                       layers[i].layer.name, WayName(base.settings), base.bytes,
                       SqnrOf(base), loss(i), sum > 0 ? loss(i) / sum : 0,
                       WayName(layers[i].ways.at(layers[i].probed).settings));
  }
  return csv;
}

}  // namespace hexllm::quant

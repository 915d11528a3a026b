// What was measured of each linear of a model: how much its rounding hurts, and
// what it costs in which scheme. Plain data and what follows from it:
// predictions, allocations under a budget, tables. Filled by cli/sensitivity.
//
// Loss is the mean Kullback-Leibler divergence of the model's next token from
// the float model's, in nats, and is taken to be
//   loss = sum over layers of kld(layer) * noise(way) / noise(probed way)
// that is additive over layers, as the noises of different layers are
// independent of one another, and proportional to the power of each layer's
// noise, as KL is to second order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quant/allocate.h"
#include "quant/recipe.h"
#include "quant/recipe_compose.h"

namespace hexllm::quant {

// One way to quantize a layer.
struct LayerWay {
  LayerSettings settings;
  uint64_t bytes = 0;  // of the weight, as ir::WeightBytes counts them
  double noise = 0;    // over signal: powers at the layer's output, the weight
                       // rounded, inputs exact
  double us = 0;       // of the target's step, where it was estimated
};

struct LayerSensitivity {
  LayerId layer;
  uint64_t weights = 0;  // numbers of its weight
  bool is_head = false;  // gives the logits
  double kld = 0;        // measured with this layer alone rounded
  size_t probed = 0;     // the way that it was rounded in
  size_t base = 0;       // the base recipe's way
  std::vector<LayerWay> ways;
};

// The settings to be tried for a layer: `base` first, then weights of 4 bits
// per channel, in blocks that divide its inputs, and of 8 bits; each with the
// base's weight observer, and with the squared error's where that is another.
// Activations stay as wide as the base's. The base alone where its activations
// have no static ranges.
std::vector<LayerSettings> WaysFor(const LayerSettings& base, int64_t inputs);
// Which of them to measure kld with: the base's where that has 4 bits, else the
// first in blocks, else the first of 4 bits. Larger noise is measured better.
size_t ProbedWay(std::span<const LayerSettings> ways);

double LossOf(const LayerSensitivity& layer, size_t way);
double SqnrOf(const LayerWay& way);  // dB

enum class CostKind : uint8_t { kBytes, kMicroseconds };
// Alternatives of each layer for Allocate.
std::vector<std::vector<Alternative>> AlternativesOf(
    std::span<const LayerSensitivity> layers, CostKind kind);
// The base recipe as an allocation.
Allocation BaseAllocation(std::span<const LayerSensitivity> layers,
                          CostKind kind);
// What ComposeRecipe makes of an allocation.
Result<Recipe> RecipeOf(const Recipe& base,
                        std::span<const LayerSensitivity> layers,
                        std::span<const size_t> chosen);

// Recipes that the base could be replaced by.
inline constexpr std::string_view kSuggestionNames[] = {"smaller", "equal",
                                                        "larger"};

struct Suggestion {
  std::string_view name;     // one of kSuggestionNames
  std::string_view meaning;  // a sentence
  Allocation allocation;     // of bytes
};
// smaller: as few bytes as possible at 0.9 times the base's loss; equal: as
// little loss as possible in no more bytes; larger: as few bytes as possible at
// half the loss. One that nothing reaches is left out.
std::vector<Suggestion> Suggest(std::span<const LayerSensitivity> layers);

// Comma-separated, a header and a line for each layer, the most sensitive
// first:
//   group_name,scheme,weight_bytes,sqnr_db,kl_nats,kl_share,measured_as
// `sqnr_db` of the layer's output, `kl_nats` the loss, both as the base recipe
// has the layer; `kl_share` of the sum over all; `measured_as` the way that the
// loss was measured in, "16a4w_block/32" for blocks.
std::string SensitivityCsv(std::span<const LayerSensitivity> layers);

}  // namespace hexllm::quant

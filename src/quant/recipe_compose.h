// A recipe for layers whose settings are known one by one: what a search or a
// suggestion writes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "quant/recipe.h"

namespace hexllm::quant {

// What a layer's weight is to be like. Of `settings`, scheme, block,
// granularity and weight_observer count.
struct LayerWish {
  LayerId layer;
  LayerSettings settings;
};

// `base` with these four settings of `wishes`, which name all layers of the
// model: the most frequent ones become defaults, the others a rule each, whose
// names are as short as sets of layer numbers allow. All else of `base` stays.
// ResolveRecipe gives each layer what was wished (checked). Errors of
// ResolveRecipe, when `base` is not for these layers.
Result<Recipe> ComposeRecipe(const Recipe& base,
                             std::span<const LayerWish> wishes);

// Globs that match all of `chosen` and no other of `all`, which holds them:
// "model.layers.[0-35].mlp.down_proj", "model.layers.*.mlp.up_proj", "lm_head".
std::vector<std::string> ShortGlobs(std::span<const std::string> chosen,
                                    std::span<const std::string> all);

}  // namespace hexllm::quant

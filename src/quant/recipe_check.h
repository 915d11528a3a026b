// What makes a recipe consistent beyond the types of its fields. Used only by
// recipe*.cc.
#pragma once

#include <string>

#include "base/status.h"
#include "quant/recipe.h"

namespace hexllm::quant {

// kBadInput naming the settings that do not go together: schemes of both
// families, settings that nothing uses, 8-bit KV without static activations,
// two rules for the same layers that set a field differently.
Status CheckRecipe(const Recipe& recipe);

// kBadInput when the settings of one layer do not go together.
Status CheckSettings(const LayerSettings& settings);

// A rule in messages: "rules[2] ('*.v_proj')".
std::string RuleLabel(const Recipe& recipe, size_t index);

}  // namespace hexllm::quant

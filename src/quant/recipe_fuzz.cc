// Attacks the recipe parser: the input is a file. What is accepted must read
// back as it is written, and its rules must apply to any layers.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "quant/recipe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hexllm::ParseJson;
  using hexllm::quant::LayerId;
  using hexllm::quant::ParseRecipe;
  using hexllm::quant::RecipeToJson;
  using hexllm::quant::ResolveRecipe;
  const auto json = ParseJson({reinterpret_cast<const char*>(data), size});
  if (!json.ok()) return 0;
  const auto recipe = ParseRecipe(*json, "input");
  if (!recipe.ok()) return 0;
  const auto written = ParseJson(RecipeToJson(*recipe));
  if (!written.ok()) __builtin_trap();
  const auto again = ParseRecipe(*written, "again");
  if (!again.ok() || !(*again == *recipe)) __builtin_trap();
  const LayerId layers[] = {{"model.layers.0.self_attn.v_proj", "linear"},
                            {"model.layers.10.mlp.down_proj", "linear"},
                            {"lm_head", "linear"},
                            {"", "softmax"}};
  const auto resolved = ResolveRecipe(*recipe, layers);
  if (resolved.ok() && resolved->layers.size() != std::size(layers))
    __builtin_trap();
  return 0;
}

#include "compile/default_recipe.h"

#include <algorithm>
#include <string_view>

#include "quant/recipe.h"

namespace hexllm {
namespace {

// Shapes of published models, enough to tell them apart. V is left out:
// checkpoints pad it differently.
struct ShapeRow {
  std::string_view recipe;
  int64_t hidden;    // M
  int64_t layers;    // L
  int64_t heads;     // H
  int64_t kv_heads;  // G
  int64_t ffn;       // F
};

constexpr ShapeRow kShapes[] = {
    {"stories260k", 64, 5, 8, 4, 172},
    {"stories110m", 768, 12, 12, 12, 2048},
    {"llama3_2-1b_instruct", 2048, 16, 32, 8, 8192},
    {"llama3_2-3b_instruct", 3072, 28, 24, 8, 8192},
    {"codegen2_1b", 2048, 16, 16, 16, 8192},
    {"gemma-2b", 2048, 18, 8, 1, 16384},
    {"gemma2-2b", 2304, 26, 8, 4, 9216},
    {"gemma3-1b", 1152, 26, 4, 1, 6912},
    {"glm-1_5b", 2048, 28, 16, 4, 6144},
    {"granite_3_3-2b_instruct", 2048, 40, 32, 8, 8192},
    {"phi_4_mini", 3072, 32, 24, 8, 8192},
    {"qwen2_5-0_5b", 896, 24, 14, 2, 4864},
    {"qwen2_5-1_5b", 1536, 28, 12, 2, 8960},
    {"qwen3-0_6b", 1024, 28, 16, 8, 3072},
    {"qwen3-1_7b", 2048, 28, 16, 8, 6144},
    {"smollm2_135m", 576, 30, 9, 3, 1536},
    {"smollm3-3b", 2048, 36, 16, 4, 11008},
    {"smolvlm_500m_instruct", 960, 32, 15, 5, 2560},
};

bool IsBuiltin(std::string_view name) {
  const auto recipes = quant::BuiltinRecipes();
  return std::any_of(recipes.begin(), recipes.end(),
                     [&](const auto& recipe) { return recipe.name == name; });
}

}  // namespace

std::string DefaultStaticRecipe(const models::ModelSource& source,
                                const models::SourceOptions& options) {
  if (IsBuiltin(options.decoder_model)) return options.decoder_model;
  const models::DecoderConfig& config = source.config;
  for (const ShapeRow& row : kShapes) {
    if (config.hidden == row.hidden && config.layers == row.layers &&
        config.heads == row.heads && config.kv_heads == row.kv_heads &&
        config.ffn == row.ffn)
      return std::string(row.recipe);
  }
  return "16a8w";
}

}  // namespace hexllm

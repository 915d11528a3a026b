// Every built-in recipe: what it says, that it reads back as it was written,
// that it is valid by the schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "quant/json_schema_testing.h"
#include "quant/recipe.h"

namespace hexllm::quant {
namespace {

using ::testing::IsEmpty;

// Schemes of the layers of a model with `layers` layers.
struct Row {
  std::string_view recipe;
  int layers;
  std::string_view scheme;  // of all layers that the others do not name
  int block;
  int kv_bits;
  std::string_view v_proj, up_proj, first_down, last_down, head;
};

constexpr std::string_view k8 = "16a8w";
constexpr std::string_view k4 = "16a4w";
constexpr std::string_view kB = "16a4w_block";

constexpr Row kRows[] = {
    {"fp32", 2, "fp32", 32, 16, "fp32", "fp32", "fp32", "fp32", "fp32"},
    {"fp16", 2, "fp16", 32, 16, "fp16", "fp16", "fp16", "fp16", "fp16"},
    {"16a16w", 2, "16a16w", 32, 16, "16a16w", "16a16w", "16a16w", "16a16w",
     "16a16w"},
    {"16a8w", 2, k8, 32, 16, k8, k8, k8, k8, k8},
    {"16a4w", 2, k4, 32, 16, k4, k4, k4, k4, k4},
    {"16a4w_block", 2, kB, 32, 16, kB, kB, kB, kB, kB},
    {"16a4w_block_gptq", 2, kB, 32, 16, kB, kB, kB, kB, k8},
    {"8a8w", 2, "8a8w", 32, 8, "8a8w", "8a8w", "8a8w", "8a8w", "8a8w"},
    {"8a4w", 2, "8a4w", 32, 8, "8a4w", "8a4w", "8a4w", "8a4w", "8a4w"},
    {"cpu-w8a8", 2, "cpu-w8a8", 32, 16, "cpu-w8a8", "cpu-w8a8", "cpu-w8a8",
     "cpu-w8a8", "cpu-w8a8"},
    {"cpu-w4a8", 2, "cpu-w4a8", 32, 16, "cpu-w4a8", "cpu-w4a8", "cpu-w4a8",
     "cpu-w4a8", "cpu-w8a8"},
    {"stories260k", 5, k4, 32, 8, k4, k4, k4, k4, k8},
    {"stories110m", 12, k4, 32, 8, "8a4w", k4, k4, k4, k8},
    {"llama3_2-1b_instruct", 16, kB, 32, 8, kB, kB, k8, kB, k8},
    {"llama3_2-3b_instruct", 28, kB, 32, 8, kB, kB, kB, k8, k8},
    {"codegen2_1b", 16, k8, 32, 16, k8, k8, k8, k8, k8},
    {"gemma-2b", 18, kB, 64, 8, k8, kB, kB, kB, k8},
    {"gemma2-2b", 26, kB, 32, 8, k8, kB, kB, kB, kB},
    {"gemma3-1b", 26, kB, 64, 8, k8, kB, kB, kB, kB},
    {"glm-1_5b", 28, kB, 32, 8, kB, kB, kB, kB, k8},
    {"granite_3_3-2b_instruct", 40, kB, 64, 8, k8, kB, kB, kB, kB},
    {"phi_4_mini", 32, kB, 16, 8, "8a4w", kB, kB, kB, k8},
    {"qwen2_5-0_5b", 24, kB, 16, 16, kB, kB, kB, kB, kB},
    {"qwen2_5-1_5b", 28, kB, 16, 16, kB, kB, kB, kB, k8},
    {"qwen3-0_6b", 28, kB, 32, 16, kB, kB, k8, k8, kB},
    {"qwen3-1_7b", 28, kB, 16, 8, kB, kB, kB, kB, k8},
    {"smollm2_135m", 30, k8, 32, 16, k8, k8, k8, k8, k8},
    {"smollm3-3b", 36, kB, 32, 8, k8, kB, kB, kB, k8},
    {"smolvlm_500m_instruct", 32, k8, 32, 16, k8, k8, k8, k8, k8},
    {"internvl3_1b", 24, k8, 32, 16, k8, k8, k8, k8, k8},
    {"granite_speech_3_3-2b", 40, kB, 64, 16, k8, k8, k8, k8, k8},
};

std::string LayerName(int layer, std::string_view part) {
  return "model.layers." + std::to_string(layer) + "." + std::string(part);
}

std::vector<LayerId> DecoderLayers(int count) {
  std::vector<LayerId> layers;
  for (int layer = 0; layer < count; ++layer) {
    for (const std::string_view part :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
          "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
      layers.push_back({LayerName(layer, part), "linear"});
  }
  layers.push_back({"lm_head", "linear"});
  return layers;
}

TEST(BuiltinRecipes, EachHasARowHereAndEachSchemeHasARecipe) {
  std::set<std::string_view> tested;
  for (const Row& row : kRows) tested.insert(row.recipe);
  std::set<std::string_view> built_in;
  for (const BuiltinRecipe& recipe : BuiltinRecipes())
    built_in.insert(recipe.name);
  EXPECT_EQ(tested, built_in);
  for (const Scheme& scheme : AllSchemes()) {
    const auto recipe = FindRecipe(std::string(scheme.name));
    ASSERT_TRUE(recipe.ok()) << recipe.error().message;
    EXPECT_EQ(recipe->defaults.scheme, &scheme);
  }
}

class BuiltinRecipeTest : public ::testing::TestWithParam<Row> {
 protected:
  void SetUp() override {
    auto recipe = FindRecipe(std::string(GetParam().recipe));
    ASSERT_TRUE(recipe.ok()) << recipe.error().message;
    recipe_ = std::move(recipe).value();
  }

  Recipe recipe_;
};

TEST_P(BuiltinRecipeTest, SaysWhatTheModelNeeds) {
  const Row& row = GetParam();
  EXPECT_EQ(recipe_.name, row.recipe);
  EXPECT_FALSE(recipe_.description.empty());
  EXPECT_EQ(recipe_.kv_bits, row.kv_bits);
  const auto resolved = ResolveRecipe(recipe_, DecoderLayers(row.layers));
  ASSERT_TRUE(resolved.ok()) << resolved.error().message;
  EXPECT_THAT(resolved->warnings, IsEmpty());
  const auto scheme = [&](int layer, std::string_view part) {
    return resolved->For(LayerName(layer, part)).scheme->name;
  };
  const int last = row.layers - 1;
  EXPECT_EQ(scheme(0, "self_attn.o_proj"), row.scheme);
  EXPECT_EQ(scheme(last, "mlp.gate_proj"), row.scheme);
  EXPECT_EQ(resolved->For("model.layers.0.mlp.gate_proj").block, row.block);
  EXPECT_EQ(scheme(0, "self_attn.v_proj"), row.v_proj);
  EXPECT_EQ(scheme(0, "mlp.up_proj"), row.up_proj);
  EXPECT_EQ(scheme(0, "mlp.down_proj"), row.first_down);
  EXPECT_EQ(scheme(last, "mlp.down_proj"), row.last_down);
  EXPECT_EQ(resolved->For("lm_head").scheme->name, row.head);
}

TEST_P(BuiltinRecipeTest, ReadsBackAsWritten) {
  const std::string text = RecipeToJson(recipe_);
  const auto json = ParseJson(text);
  ASSERT_TRUE(json.ok());
  const auto again = ParseRecipe(*json, "again");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(*again == recipe_) << text;
  EXPECT_EQ(RecipeToJson(*again), text);
}

TEST_P(BuiltinRecipeTest, IsValidByTheSchema) {
  const auto schema = ParseJson(RecipeSchema());
  ASSERT_TRUE(schema.ok());
  for (const BuiltinRecipe& builtin : BuiltinRecipes()) {
    if (builtin.name != GetParam().recipe) continue;
    for (const std::string& text :
         {std::string(builtin.json), RecipeToJson(recipe_)}) {
      const auto json = ParseJson(text);
      ASSERT_TRUE(json.ok());
      EXPECT_EQ(SchemaViolation(*schema, *json), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BuiltinRecipeTest, ::testing::ValuesIn(kRows),
                         [](const auto& row) {
                           std::string name(row.param.recipe);
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) ==
                                 0)
                               c = '_';
                           return name;
                         });

// The rules that depend on the layer's number, at both ends.
TEST(BuiltinRecipes, LayerRangesAreThoseOfTheModels) {
  const auto eight_bit = [](const std::string& name, int layers) {
    std::vector<int> found;
    const auto recipe = FindRecipe(name);
    EXPECT_TRUE(recipe.ok());
    const auto resolved = ResolveRecipe(*recipe, DecoderLayers(layers));
    EXPECT_TRUE(resolved.ok());
    for (int layer = 0; layer < layers; ++layer) {
      if (resolved->For(LayerName(layer, "mlp.down_proj")).scheme->name == k8)
        found.push_back(layer);
    }
    return found;
  };
  EXPECT_EQ(eight_bit("llama3_2-1b_instruct", 16),
            (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(eight_bit("llama3_2-3b_instruct", 28),
            (std::vector<int>{21, 22, 23, 24, 25, 26, 27}));
}

TEST(BuiltinRecipes, WeightSearchAndSymmetryWhereTheyAreWanted) {
  const std::set<std::string_view> seq_mse = {
      "16a4w_block_gptq", "llama3_2-1b_instruct", "qwen3-0_6b"};
  const std::set<std::string_view> gptq = {"16a4w_block_gptq", "smollm2_135m"};
  const std::set<std::string_view> symmetric = {"stories110m", "phi_4_mini"};
  for (const Row& row : kRows) {
    const auto recipe = FindRecipe(std::string(row.recipe));
    const auto resolved = ResolveRecipe(*recipe, DecoderLayers(row.layers));
    ASSERT_TRUE(resolved.ok());
    const LayerSettings& gate = resolved->For(LayerName(0, "mlp.gate_proj"));
    EXPECT_EQ(gate.weight_observer == WeightObserverKind::kSeqMse,
              seq_mse.count(row.recipe) > 0)
        << row.recipe;
    EXPECT_EQ(gate.rounding == RoundingKind::kGptq, gptq.count(row.recipe) > 0)
        << row.recipe;
    EXPECT_EQ(gate.gptq_damping, row.recipe == "16a4w_block_gptq" ? 0.1 : 0.01)
        << row.recipe;
    EXPECT_EQ(gate.seq_mse_candidates, 50);
    EXPECT_FALSE(gate.symmetric_activations);
    EXPECT_EQ(
        resolved->For(LayerName(0, "self_attn.v_proj")).symmetric_activations,
        symmetric.count(row.recipe) > 0)
        << row.recipe;
  }
}

}  // namespace
}  // namespace hexllm::quant

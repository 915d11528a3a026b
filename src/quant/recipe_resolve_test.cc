// Rules applied to layers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/recipe.h"

namespace hexllm::quant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Recipe Parse(std::string_view text) {
  auto json = ParseJson(text);
  EXPECT_TRUE(json.ok());
  auto recipe = ParseRecipe(*json, "r.json");
  EXPECT_TRUE(recipe.ok()) << recipe.error().message;
  return recipe.ok() ? std::move(recipe).value() : Recipe();
}

Recipe WithRules(const std::string& rules) {
  return Parse(R"({"name": "r", "defaults": {"scheme": "16a4w"}, "rules": [)" +
               rules + "]}");
}

// Two layers of four linears, and a head.
std::vector<LayerId> Layers() {
  std::vector<LayerId> layers;
  for (const int layer : {0, 1}) {
    for (const char* part : {"self_attn.q_proj", "self_attn.v_proj",
                             "mlp.up_proj", "mlp.down_proj"})
      layers.push_back(
          {fmt::format("model.layers.{}.{}", layer, part), "linear"});
  }
  layers.push_back({"lm_head", "linear"});
  return layers;
}

ResolvedRecipe Resolve(const Recipe& recipe) {
  auto resolved = ResolveRecipe(recipe, Layers());
  EXPECT_TRUE(resolved.ok()) << resolved.error().message;
  return resolved.ok() ? std::move(resolved).value() : ResolvedRecipe();
}

std::string ErrorOf(const Recipe& recipe) {
  const auto resolved = ResolveRecipe(recipe, Layers());
  EXPECT_FALSE(resolved.ok());
  if (resolved.ok()) return "";
  EXPECT_EQ(resolved.error().code, ErrorCode::kBadInput);
  return resolved.error().message;
}

std::string_view SchemeOf(const ResolvedRecipe& resolved,
                          const std::string& layer) {
  return resolved.For(layer).scheme->name;
}

TEST(ResolveRecipe, LayersWithoutRuleHaveTheDefaults) {
  const ResolvedRecipe resolved = Resolve(WithRules(""));
  EXPECT_EQ(resolved.layers.size(), Layers().size());
  EXPECT_EQ(resolved.For("lm_head"), resolved.recipe.defaults);
  // A layer that was not asked for.
  EXPECT_EQ(resolved.For("model.norm"), resolved.recipe.defaults);
}

TEST(ResolveRecipe, TheLastMatchingRuleWinsFieldByField) {
  const ResolvedRecipe resolved = Resolve(WithRules(R"(
      {"names": ["*"], "weight_observer": "mse", "mse_candidates": 7},
      {"ops": ["linear"], "names": ["*.v_proj"], "scheme": "16a8w"},
      {"names": ["model.layers.1.*"], "scheme": "8a8w", "percentile": 99})"));
  EXPECT_EQ(SchemeOf(resolved, "lm_head"), "16a4w");
  EXPECT_EQ(SchemeOf(resolved, "model.layers.0.self_attn.v_proj"), "16a8w");
  EXPECT_EQ(SchemeOf(resolved, "model.layers.1.self_attn.v_proj"), "8a8w");
  EXPECT_EQ(SchemeOf(resolved, "model.layers.1.mlp.up_proj"), "8a8w");
  for (const LayerId& layer : Layers()) {
    EXPECT_EQ(resolved.For(layer.name).weight_observer,
              WeightObserverKind::kMse);
    EXPECT_EQ(resolved.For(layer.name).mse_candidates, 7);
  }
  EXPECT_EQ(resolved.For("lm_head").percentile, 99.99);
  EXPECT_EQ(resolved.For("model.layers.1.mlp.up_proj").percentile, 99);
}

TEST(ResolveRecipe, EverySettingOfARuleIsApplied) {
  const ResolvedRecipe resolved = Resolve(WithRules(R"(
      {"names": ["lm_head"], "scheme": "16a4w_block", "block": 64},
      {"names": ["*.q_proj"], "scheme": "16a16w", "granularity": "per_tensor",
       "observer": "histogram_mse", "momentum": 0.5,
       "symmetric_activations": true})"));
  const LayerSettings& head = resolved.For("lm_head");
  EXPECT_EQ(head.scheme, FindScheme("16a4w_block"));
  EXPECT_EQ(head.block, 64);
  const LayerSettings& q = resolved.For("model.layers.0.self_attn.q_proj");
  EXPECT_EQ(q.granularity, WeightGranularity::kPerTensor);
  EXPECT_EQ(q.observer, ObserverKind::kHistogramMse);
  EXPECT_EQ(q.momentum, 0.5);
  EXPECT_TRUE(q.symmetric_activations);
}

TEST(ResolveRecipe, WarnsWhereARuleChangesWhatAnEarlierOneSet) {
  const ResolvedRecipe resolved = Resolve(WithRules(R"(
      {"names": ["*.v_proj", "lm_head"], "scheme": "16a8w"},
      {"names": ["model.layers.*"], "scheme": "8a4w", "momentum": 0.2})"));
  EXPECT_THAT(
      resolved.warnings,
      ElementsAre("recipe r: layer 'model.layers.0.self_attn.v_proj' and 1 "
                  "more: rules[1] ('model.layers.*') changes scheme from "
                  "\"16a8w\", set by rules[0] ('*.v_proj', ...), to "
                  "\"8a4w\""));
  EXPECT_EQ(SchemeOf(resolved, "model.layers.0.self_attn.v_proj"), "8a4w");
}

TEST(ResolveRecipe, ChangingDefaultsOrSayingTheSameIsNoWarning) {
  const ResolvedRecipe resolved = Resolve(WithRules(R"(
      {"names": ["*.v_proj"], "scheme": "16a8w"},
      {"names": ["*.self_attn.*"], "scheme": "16a8w"})"));
  EXPECT_THAT(resolved.warnings, IsEmpty());
}

TEST(ResolveRecipe, ARuleOrPatternThatMatchesNothingIsAnError) {
  EXPECT_THAT(ErrorOf(WithRules(R"({"names": ["*.v_proj"], "scheme": "16a8w"},
                           {"names": ["*.wv"], "scheme": "16a8w"})")),
              AllOf(HasSubstr("recipe r: rules[1] ('*.wv')"),
                    HasSubstr("'*.wv' matches no layer of this model")));
  EXPECT_THAT(
      ErrorOf(WithRules(R"({"names": ["lm_head", "head"], "block": 16})")),
      HasSubstr("'head' matches no layer"));
  // The name matches, the op does not.
  const LayerId other{"lm_head", "other"};
  for (const auto& [rule, part] :
       {std::pair(R"({"names": ["lm_head"], "ops": ["linear"], "block": 16})",
                  "'lm_head' matches no layer"),
        std::pair(R"({"ops": ["linear"], "block": 16})",
                  "'linear' matches no layer")}) {
    const auto resolved = ResolveRecipe(WithRules(rule), {&other, 1});
    ASSERT_FALSE(resolved.ok()) << rule;
    EXPECT_THAT(resolved.error().message, HasSubstr(part));
  }
}

TEST(ResolveRecipe, SettingsThatDoNotGoTogetherAreErrors) {
  EXPECT_THAT(
      ErrorOf(WithRules(R"({"names": ["lm_head"], "scheme": "16a16w"})")),
      AllOf(HasSubstr("layer 'lm_head'"), HasSubstr("expected per_tensor"),
            HasSubstr("16a16w")));
  EXPECT_THAT(
      ErrorOf(WithRules(R"({"names": ["*.up_proj"], "scheme": "16a4w_block",
                            "granularity": "per_tensor"})")),
      AllOf(HasSubstr("layer 'model.layers.0.mlp.up_proj'"),
            HasSubstr("expected per_channel")));
}

// Layers() with K of 96, of the down projections 80, of the head 72.
std::vector<LayerId> NarrowLayers() {
  std::vector<LayerId> layers = Layers();
  for (LayerId& layer : layers) {
    const bool down = layer.name.ends_with("down_proj");
    layer.inputs = layer.name == "lm_head" ? 72 : down ? 80 : 96;
  }
  return layers;
}

TEST(ResolveRecipe, BlocksThatDoNotDivideTheInputsAreErrors) {
  const auto error = [](const std::string& rules) {
    const auto resolved = ResolveRecipe(WithRules(rules), NarrowLayers());
    EXPECT_FALSE(resolved.ok());
    if (resolved.ok()) return std::string();
    EXPECT_EQ(resolved.error().code, ErrorCode::kUnsupported);
    return resolved.error().message;
  };
  EXPECT_EQ(error(R"({"names": ["*.down_proj"], "scheme": "16a4w_block"})"),
            "recipe r: layer 'model.layers.0.mlp.down_proj': expected blocks "
            "that divide its 80 input channels, found blocks of 32; give the "
            "layer \"block\": 16");
  EXPECT_THAT(
      error(R"({"names": ["lm_head"], "scheme": "16a4w_block", "block": 16})"),
      HasSubstr("72 input channels, found blocks of 16; give the layer a "
                "scheme without blocks, e.g. 16a8w"));
  EXPECT_TRUE(
      ResolveRecipe(
          WithRules(R"({"names": ["*.up_proj"], "scheme": "16a4w_block"})"),
          NarrowLayers())
          .ok());
}

TEST(FitRecipe, DropsWhatMatchesNothingAndGivesBlocksThatDivide) {
  const Recipe recipe = Parse(R"({"name": "r",
      "defaults": {"scheme": "16a4w_block", "block": 64}, "rules": [
      {"names": ["model.layers.2[1-7].*"], "scheme": "16a8w"},
      {"names": ["*.wv", "*.v_proj"], "scheme": "16a8w"},
      {"names": ["lm_head"], "ops": ["linear"], "block": 32}]})");
  EXPECT_FALSE(ResolveRecipe(recipe, NarrowLayers()).ok());
  const FittedRecipe fitted = FitRecipe(recipe, NarrowLayers());
  EXPECT_THAT(
      fitted.notes,
      ElementsAre("recipe r: rules[0] ('model.layers.2[1-7].*'): "
                  "'model.layers.2[1-7].*' matches no layer of this model and "
                  "is left out",
                  "recipe r: rules[1] ('*.wv', ...): '*.wv' matches no layer "
                  "of this model and is left out",
                  "recipe r: layer 'lm_head': its blocks do not divide the 72 "
                  "input channels; scheme 16a8w",
                  "recipe r: layer 'model.layers.0.mlp.down_proj' and 1 more: "
                  "its blocks do not divide the 80 input channels; blocks of "
                  "16",
                  "recipe r: layer 'model.layers.0.self_attn.q_proj' and 3 "
                  "more: its blocks do not divide the 96 input channels; "
                  "blocks of 32"));
  const auto resolved = ResolveRecipe(fitted.recipe, NarrowLayers());
  ASSERT_TRUE(resolved.ok()) << resolved.error().message;
  EXPECT_THAT(resolved->warnings, IsEmpty());
  EXPECT_EQ(SchemeOf(*resolved, "lm_head"), "16a8w");
  EXPECT_EQ(SchemeOf(*resolved, "model.layers.1.self_attn.v_proj"), "16a8w");
  EXPECT_EQ(resolved->For("model.layers.1.mlp.down_proj").block, 16);
  EXPECT_EQ(resolved->For("model.layers.1.self_attn.q_proj").block, 32);
  // An artifact keeps it as text.
  EXPECT_EQ(Parse(RecipeToJson(fitted.recipe)), fitted.recipe);
}

TEST(FitRecipe, LeavesARecipeThatFits) {
  const Recipe recipe =
      WithRules(R"({"names": ["*.up_proj"], "scheme": "16a4w_block"})");
  const FittedRecipe fitted = FitRecipe(recipe, NarrowLayers());
  EXPECT_EQ(fitted.recipe, recipe);
  EXPECT_THAT(fitted.notes, IsEmpty());
}

TEST(ResolveRecipe, AModelWithoutLayersHasNoneForRules) {
  EXPECT_TRUE(ResolveRecipe(WithRules(""), {}).ok());
  EXPECT_FALSE(
      ResolveRecipe(WithRules(R"({"names": ["*"], "block": 16})"), {}).ok());
}

}  // namespace
}  // namespace hexllm::quant

// Sensitivities, and the recipes that are made of them.
#include "quant/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/json.h"
#include "ir/pseudo_random.h"
#include "quant/rounding_error.h"

namespace hexllm::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

Recipe BaseRecipe() {
  const auto json = ParseJson(R"({"name": "base", "kv_bits": 8,
    "defaults": {"scheme": "16a4w_block", "block": 32},
    "rules": [
      {"names": ["lm_head"], "scheme": "16a8w", "observer": "percentile"},
      {"names": ["*.v_proj"], "weight_observer": "mse"}]})");
  const auto recipe = ParseRecipe(*json, "base");
  EXPECT_TRUE(recipe.ok());
  return *recipe;
}

// Two kinds of linear in 12 layers, and a head: layers that hurt differently.
std::vector<LayerSensitivity> MakeLayers() {
  const Recipe base = BaseRecipe();
  std::vector<LayerId> ids;
  for (int i = 0; i < 12; ++i) {
    for (const char* kind : {"self_attn.v_proj", "mlp.down_proj"})
      ids.push_back(
          {"model.layers." + std::to_string(i) + "." + kind, "linear", 96});
  }
  ids.push_back({"lm_head", "linear", 96});
  const auto resolved = ResolveRecipe(base, ids);
  EXPECT_TRUE(resolved.ok());
  ir::PseudoRandom random("layers");
  std::vector<LayerSensitivity> layers;
  for (const LayerId& id : ids) {
    LayerSensitivity layer{.layer = id, .ways = {}};
    layer.kld = std::exp(-6 * static_cast<double>(random.Unit()));
    const auto ways = WaysFor(resolved->For(id.name), id.inputs);
    layer.probed = ProbedWay(ways);
    for (const LayerSettings& way : ways) {
      const int bits = way.scheme->weight_bits;
      const int factors = way.scheme->block ? 9600 / way.block : 0;
      const double blocks = way.scheme->block ? 0.01 * way.block : 1;
      layer.ways.push_back(
          {.settings = way,
           .bytes = static_cast<uint64_t>(9600 * bits / 8 + factors),
           .noise = blocks * std::exp2(-2.0 * bits)});
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

TEST(WaysForTest, BeginsWithTheBaseAndKeepsActivations) {
  LayerSettings base;
  base.scheme = FindScheme("16a8w");
  base.observer = ObserverKind::kPercentile;
  const auto ways = WaysFor(base, 96);
  EXPECT_EQ(ways.front(), base);
  EXPECT_EQ(ways.size(), 8u);  // 8w, 4w, blocks of 32 and 16; two observers
  for (const LayerSettings& way : ways) {
    EXPECT_EQ(way.scheme->activation_bits, 16);
    EXPECT_EQ(way.observer, base.observer);
    if (way.scheme->block) {
      EXPECT_EQ(96 % way.block, 0);
    }
  }
  EXPECT_TRUE(ways[ProbedWay(ways)].scheme->block);
  // Nothing but 4 and 8 bits per channel: no block divides 30.
  EXPECT_EQ(WaysFor(base, 30).size(), 4u);
  base.scheme = FindScheme("8a4w");
  for (const LayerSettings& way : WaysFor(base, 96))
    EXPECT_EQ(way.scheme->activation_bits, 8);
  base.scheme = FindScheme("fp16");
  EXPECT_THAT(WaysFor(base, 96), ElementsAre(base));
}

TEST(ShortGlobsTest, NameSetsOfLayers) {
  std::vector<std::string> all = {"lm_head"};
  for (int i = 0; i < 30; ++i)
    all.push_back("model.layers." + std::to_string(i) + ".mlp.up_proj");
  const auto up = [](int i) {
    return "model.layers." + std::to_string(i) + ".mlp.up_proj";
  };
  EXPECT_THAT(ShortGlobs(all, all),
              ElementsAre("lm_head", "model.layers.*.mlp.up_proj"));
  EXPECT_THAT(
      ShortGlobs(
          std::vector{up(0), up(1), up(2), up(4), up(17), up(20), up(21)}, all),
      ElementsAre("model.layers.[0-24].mlp.up_proj",
                  "model.layers.17.mlp.up_proj",
                  "model.layers.2[01].mlp.up_proj"));
}

// Whatever is chosen: a valid file that gives each layer just that, and leaves
// the rest of the base as it was.
TEST(RecipeOfTest, GivesEachLayerItsWay) {
  const std::vector<LayerSensitivity> layers = MakeLayers();
  ir::PseudoRandom random("ways");
  for (int round = 0; round < 20; ++round) {
    std::vector<size_t> chosen;
    std::vector<LayerId> ids;
    for (const LayerSensitivity& layer : layers) {
      chosen.push_back(random.Below(layer.ways.size()));
      ids.push_back(layer.layer);
    }
    const auto made = RecipeOf(BaseRecipe(), layers, chosen);
    ASSERT_TRUE(made.ok()) << made.error().message;
    const auto read = ParseRecipe(*ParseJson(RecipeToJson(*made)), "made");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, *made);
    EXPECT_EQ(read->kv_bits, 8);
    const auto resolved = ResolveRecipe(*read, ids);
    ASSERT_TRUE(resolved.ok()) << resolved.error().message;
    EXPECT_TRUE(resolved->warnings.empty());
    for (size_t i = 0; i < layers.size(); ++i) {
      const LayerSettings& found = resolved->For(ids[i].name);
      LayerSettings wanted = layers[i].ways[chosen[i]].settings;
      if (!wanted.scheme->block) wanted.block = found.block;
      EXPECT_EQ(found, wanted) << ids[i].name;
    }
  }
}

TEST(SuggestTest, IsNoWorseThanTheBase) {
  const std::vector<LayerSensitivity> layers = MakeLayers();
  const Allocation base = BaseAllocation(layers, CostKind::kBytes);
  const auto found = Suggest(layers);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "smaller");
  EXPECT_LT(found[0].allocation.cost, base.cost);
  EXPECT_LE(found[0].allocation.loss, base.loss);
  EXPECT_EQ(found[1].name, "equal");
  EXPECT_LE(found[1].allocation.cost, base.cost);
  EXPECT_LT(found[1].allocation.loss, base.loss);
  EXPECT_EQ(found[2].name, "larger");
  EXPECT_LE(found[2].allocation.loss, base.loss / 2);
}

TEST(SensitivityCsvTest, TheMostSensitiveLayerIsFirst) {
  std::istringstream csv(SensitivityCsv(MakeLayers()));
  std::string line;
  std::getline(csv, line);
  EXPECT_THAT(line,
              StartsWith("group_name,scheme,weight_bytes,sqnr_db,kl_nat"));
  double before = INFINITY;
  size_t rows = 0;
  for (; std::getline(csv, line); ++rows) {
    std::istringstream cells(line);
    std::string cell;
    for (int i = 0; i < 5; ++i) std::getline(cells, cell, ',');
    EXPECT_LE(std::stod(cell), before);
    before = std::stod(cell);
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 6);
  }
  EXPECT_EQ(rows, MakeLayers().size());
}

// Against the sums spelled out.
TEST(RoundingErrorTest, IsTheErrorOfTheOutput) {
  const ir::Constant weight =
      ir::MakeRandomConstant("w", {.dtype = DType::kF32, .shape = {3, 32}});
  LayerSettings settings;
  settings.scheme = FindScheme("16a4w_block");
  const auto rounded = RoundedWeight(weight, settings);
  ASSERT_TRUE(rounded.ok()) << rounded.error().message;
  ir::PseudoRandom random("x");
  std::vector<float> x(2 * 32), w(32), r(32);
  for (float& value : x) value = random.Unit();
  double signal = 0, noise = 0;
  for (int64_t n = 0; n < 3; ++n) {
    ir::ReadRow(weight, n, w);
    ir::ReadRow(*rounded, n, r);
    for (size_t s = 0; s < 2; ++s) {
      double y = 0, error = 0;
      for (size_t k = 0; k < 32; ++k) {
        y += static_cast<double>(x[s * 32 + k]) * static_cast<double>(w[k]);
        error += static_cast<double>(x[s * 32 + k]) *
                 static_cast<double>(w[k] - r[k]);
      }
      signal += y * y;
      noise += error * error;
    }
  }
  EXPECT_GT(noise, 0);
  const OutputError found = OutputErrorOf(weight, *rounded, x);
  EXPECT_NEAR(found.signal, signal, 1e-5 * signal);
  EXPECT_NEAR(found.noise, noise, 1e-3 * noise);
}

TEST(SampleRowsTest, TakesRowsEvenly) {
  ir::Constant weight =
      ir::MakeRandomConstant("w", {.dtype = DType::kF32, .shape = {8, 4}});
  weight.rows = {7, 6, 5, 4, 3, 2, 1, 0};
  const ir::Constant sample = SampleRows(weight, 3);
  EXPECT_EQ(sample.type.shape, (Shape{3, 4}));
  std::vector<float> expected(4), found(4);
  for (const auto& [at, row] : {std::pair{0, 0}, {1, 2}, {2, 5}}) {
    ir::ReadRow(weight, row, expected);
    ir::ReadRow(sample, at, found);
    EXPECT_EQ(found, expected);
  }
  EXPECT_EQ(SampleRows(weight, 8).type.shape, weight.type.shape);
}

}  // namespace
}  // namespace hexllm::quant

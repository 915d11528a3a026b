#include "compile/smooth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "backend/engines.h"
#include "compile/compiler.h"
#include "compile/requantize.h"
#include "compile/rewrite_weights.h"
#include "compile/tapped_run.h"
#include "models/decoder.h"
#include "passes/pipeline.h"
#include "runtime/session.h"
#include "tests/support/golden_tensors.h"

namespace hexllm {
namespace {

using models::ModelSource;
using quant::Smoothing;

const TokenSequences kSequences = {{1, 5, 9, 2, 4, 7, 3, 8}, {6, 2}};

ModelSource OpenFixture(const std::string& model) {
  auto source = models::OpenModel(testing::DataPath("models/" + model), {});
  EXPECT_TRUE(source.ok()) << source.error().message;
  return source.ok() ? std::move(*source) : ModelSource();
}

quant::Recipe SmoothRecipe(const Smoothing& smooth, std::string_view scheme) {
  quant::Recipe recipe;
  recipe.defaults.scheme = quant::FindScheme(scheme);
  recipe.smooth = smooth;
  return recipe;
}

ModelSource Smoothed(const ModelSource& source, const Smoothing& smooth,
                     std::string_view scheme = "16a4w") {
  NullProgress progress;
  const quant::Recipe recipe = SmoothRecipe(smooth, scheme);
  auto made = SmoothModel(source, {.recipe = recipe,
                                   .sequences = kSequences,
                                   .threads = 1,
                                   .progress = progress});
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? std::move(*made) : ModelSource();
}

// The float graph's, of all positions of the first sequence.
std::vector<float> LogitsOf(const ModelSource& source) {
  const std::vector<int32_t>& ids = kSequences.front();
  const models::GraphRequest request{.kind = GraphKind::kKv,
                                     .step_tokens = 1,
                                     .context_tokens = 16,
                                     .logits = LogitsRows::kAll};
  auto module = models::BuildDecoder(source, {&request, 1});
  EXPECT_TRUE(module.ok()) << module.error().message;
  EXPECT_TRUE(RunPipeline(*module, "cpu", {}).ok());
  const auto engine = CreateEngine("cpu", {.threads = 1});
  const auto session =
      Session::Create({*LowerInMemory(source, *module), engine->get(), {}});
  std::vector<float> logits;
  EXPECT_TRUE((*session)
                  ->Logits(ids,
                           [&](uint32_t, std::span<const float> row) {
                             logits.insert(logits.end(), row.begin(),
                                           row.end());
                             return OkStatus();
                           })
                  .ok());
  return logits;
}

// The stored bytes of a tensor.
std::string BytesOf(const ModelSource& source, const std::string& name) {
  const TensorView* tensor = source.checkpoint->Find(name);
  EXPECT_NE(tensor, nullptr) << name;
  return tensor == nullptr ? std::string() : std::string(AsText(tensor->data));
}

class SmoothTest : public ::testing::TestWithParam<const char*> {};

// Of each kind: GQA, biases, fused tensors, norms behind, 1 + w, LayerNorm and
// one norm for attention and a plain MLP, factors of sums.
INSTANTIATE_TEST_SUITE_P(Models, SmoothTest,
                         ::testing::Values("llama3_2_1b", "qwen2_5_0_5b",
                                           "phi4_mini", "gemma2_2b",
                                           "codegen2_1b", "granite3_3_2b"),
                         [](const auto& instance) {
                           return std::string(instance.param);
                         });

TEST_P(SmoothTest, TheModelComputesWhatItDid) {
  const ModelSource source = OpenFixture(GetParam());
  const std::vector<float> expected = LogitsOf(source);
  ASSERT_FALSE(expected.empty());
  for (const Smoothing& smooth :
       {Smoothing{.kind = Smoothing::Kind::kAlpha, .alpha = 0.75},
        Smoothing{.kind = Smoothing::Kind::kSearch}}) {
    const ModelSource made = Smoothed(source, smooth);
    const std::vector<float> logits = LogitsOf(made);
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits[i], expected[i], 1e-4) << i;
  }
}

// What gives and what reads has other numbers with other factors, all else the
// same ones.
TEST_P(SmoothTest, ChangesItsPlacesAlone) {
  const ModelSource source = OpenFixture(GetParam());
  const ModelSource made =
      Smoothed(source, {.kind = Smoothing::Kind::kAlpha, .alpha = 0.5});
  const ModelSource other =
      Smoothed(source, {.kind = Smoothing::Kind::kAlpha, .alpha = 0.75});
  EXPECT_NE(made.id, other.id);
  std::set<std::string> unchanged;
  for (const TensorView& tensor : made.checkpoint->tensors()) {
    if (BytesOf(other, tensor.name) == BytesOf(made, tensor.name))
      unchanged.insert(tensor.name);
  }
  EXPECT_TRUE(unchanged.contains("model.embed_tokens.weight"));
  for (const char* name : {"model.norm.weight", "lm_head.weight",
                           "model.layers.0.input_layernorm.weight",
                           "model.layers.1.self_attn.q_proj.weight",
                           "model.layers.1.self_attn.v_proj.weight",
                           "model.layers.0.self_attn.o_proj.weight",
                           "model.layers.0.mlp.up_proj.weight"}) {
    EXPECT_FALSE(unchanged.contains(name)) << name;
  }
  EXPECT_EQ(unchanged.contains("model.layers.0.mlp.down_proj.weight"),
            source.config.mlp_form == models::MlpForm::kPlain);
}

// One channel of layer 1's product is far louder than all others: float16 is
// for it, and where there is none, factors.
TEST(Smooth, ASearchLeavesProductsOfHalvesAlone) {
  constexpr const char* kDown = "model.layers.1.mlp.down_proj.weight";
  const ModelSource source = OpenFixture("llama3_2_1b");
  auto writer = WeightRewriter::Create(source, "loud weights");
  ASSERT_TRUE(writer.ok());
  for (const auto& [name, constant] : writer->constants()) {
    TensorRewrite rewrite;
    if (name == "model.layers.1.mlp.up_proj.weight") {
      rewrite.apply = [](std::span<float> rows, int64_t first) {
        if (first > 0) return;
        for (float& weight : rows.first(rows.size() / 64)) weight *= 3000;
      };
    }
    ASSERT_TRUE(writer->Write(name, *constant, rewrite).ok());
  }
  const auto loud = writer->Finish();
  ASSERT_TRUE(loud.ok());
  const Smoothing search = {.kind = Smoothing::Kind::kSearch};
  const std::string before = BytesOf(*loud, kDown);
  EXPECT_EQ(BytesOf(Smoothed(*loud, search, "16a8w"), kDown), before);
  EXPECT_NE(BytesOf(Smoothed(*loud, search, "16a4w_block"), kDown), before);
}

// Also of a recipe that calibrates nothing else.
TEST(Smooth, FloatGraphsOfAnArtifactHaveItsFactors) {
  const std::string path = testing::DataPath("models/llama3_2_1b");
  CompileOptions options;
  options.mode = ModelMode::kKv;
  options.max_context_len = 16;
  options.recipe_json = R"({"name": "r", "defaults": {"scheme": "cpu-w4a8"},
                            "smooth": "search"})";
  options.calibration.ids = kSequences;
  NullProgress progress;
  const auto made = CompileToMemory(path, options, progress);
  ASSERT_TRUE(made.ok()) << made.error().message;
  options.recipe_json.clear();
  options.calibration = {};
  const auto again = FloatOptions(**made, options);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->calibration.ids, kSequences);
  const auto floats = CompileToMemory(path, *again, progress);
  ASSERT_TRUE(floats.ok()) << floats.error().message;
  EXPECT_EQ((*floats)->manifest().stage, "fp");
  EXPECT_EQ((*floats)->manifest().model_id, (*made)->manifest().model_id);
  // A longer text than the artifact's context may run in it.
  options.max_context_len = 40;
  EXPECT_EQ(FloatOptions(**made, options)->max_context_len, 40);
  options.max_context_len = 16;
  const auto plain = CompileToMemory(path, options, progress);
  EXPECT_NE((*plain)->manifest().model_id, (*made)->manifest().model_id);
}

// Layers without codes have no errors that factors could lessen: of half
// precision, as stored, and of widths that dynamic schemes cannot round.
TEST(Smooth, LeavesLayersWithoutCodesAlone) {
  constexpr const char* kQuery = "model.layers.0.self_attn.q_proj.weight";
  for (const Smoothing& smooth :
       {Smoothing{.kind = Smoothing::Kind::kAlpha, .alpha = 0.5},
        Smoothing{.kind = Smoothing::Kind::kSearch}}) {
    for (const auto& [model, scheme] : {std::pair{"llama3_2_1b", "fp16"},
                                        {"llama3_2_1b", "fp32"},
                                        {"qwen2_5_0_5b", "cpu-w4a8"}}) {
      const ModelSource source = OpenFixture(model);
      EXPECT_TRUE(BytesOf(Smoothed(source, smooth, scheme), kQuery) ==
                  BytesOf(source, kQuery))
          << model << ' ' << scheme;
    }
  }
}

// Rotated tables are rounded where a recipe rounds what is looked up; the float
// graph's is not.
TEST(Smooth, FloatGraphsOfRotatedModelsAreExact) {
  const std::string path = testing::DataPath("models/llama3_2_1b");
  CompileOptions options;
  options.mode = ModelMode::kKv;
  options.max_context_len = 16;
  options.stage = Stage::kFloat;
  options.calibration.ids = kSequences;
  options.recipe_json = R"({"name": "r", "defaults": {"scheme": "16a8w"},
                            "r1": "hadamard", "smooth": 0.5})";
  NullProgress progress;
  const auto made = CompileToMemory(path, options, progress);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto engine = CreateEngine("cpu", {.threads = 1});
  const auto session = Session::Create({*made, engine->get(), {}});
  ASSERT_TRUE(session.ok()) << session.error().message;
  const std::vector<float> expected = LogitsOf(OpenFixture("llama3_2_1b"));
  EXPECT_TRUE((*session)
                  ->Logits(kSequences.front(),
                           [&](uint32_t row, std::span<const float> logits) {
                             for (size_t i = 0; i < logits.size(); ++i) {
                               EXPECT_NEAR(logits[i],
                                           expected[row * logits.size() + i],
                                           1e-5);
                             }
                             return OkStatus();
                           })
                  .ok());
}

}  // namespace
}  // namespace hexllm

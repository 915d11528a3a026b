// Every position's logits against Hugging Face transformers in fp32, for every
// step size, and bit-identical among them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/e2e/run_model.h"
#include "tests/support/golden_tensors.h"

namespace hexllm::testing {
namespace {

struct Case {
  std::string model;    // a checkpoint under tests/data
  std::string golden;   // its golden file there
  std::string prefix;   // of the tensor names
  float tolerance;      // largest absolute error of a logit
  float greedy_margin;  // greedy tokens must agree while the golden margin
                        // exceeds this
  std::vector<std::string> prompts = {"p0", "p1"};
  models::SourceOptions source = {};
};

Case Gguf(const std::string& family, const std::string& type,
          const std::string& width) {
  const std::string folder = "gguf/" + family + "/";
  return {.model = folder + family + "-" + width + "-" + type + ".gguf",
          .golden = folder + "golden-" + width + ".safetensors",
          .prefix = type + ".",
          .tolerance = 3e-4f,
          .greedy_margin = 0.01f};
}

// A folder of tests/data/models, the largest error, and what else there is to
// the same weights.
struct HfModel {
  std::string name;
  float tolerance = 2e-4f;
  // Others than config.json and config_v5.json: config_X.json and, with the
  // overrides, golden_X.safetensors.
  struct Variant {
    std::string name;
    std::vector<std::string> overrides = {};  // empty = config_X.json
  };
  std::vector<Variant> variants = {};
  bool has_v5 = true;
};

const std::vector<HfModel>& HfModels() {
  // Where fp32 alone differs by more than 1e-4: 5e-4.
  static const std::vector<HfModel> models = {
      {.name = "codegen2_1b",
       .variants = {{"mp4", {"mp_num=4"}}},
       .has_v5 = false},
      {.name = "gemma_2b",
       .tolerance = 5e-4f,
       .variants = {{"gelu_erf", {"hidden_activation=gelu"}}}},
      {.name = "gemma2_2b"},
      {.name = "gemma3_1b", .variants = {{"linear8"}}},
      {.name = "glm_edge_1_5b", .variants = {{"partial50"}}},
      {.name = "granite3_3_2b"},
      {.name = "llama3_2_1b"},
      {.name = "llama3_2_3b", .variants = {{"linear"}, {"norope_scaling"}}},
      {.name = "phi4_mini", .tolerance = 5e-4f},
      {.name = "qwen2_5_0_5b"},
      {.name = "qwen3_0_6b"},
      {.name = "smollm2_135m"},
      {.name = "smollm3_3b", .tolerance = 5e-4f, .variants = {{"interval2"}}},
  };
  return models;
}

void AddHf(const HfModel& model, std::vector<Case>& cases) {
  const std::string folder = "models/" + model.name;
  const Case base = {.model = folder,
                     .golden = folder + "/golden.safetensors",
                     .prefix = "",
                     .tolerance = model.tolerance,
                     .greedy_margin = 1e-3f,
                     .prompts = {"p0", "p1", "p2"}};
  cases.push_back(base);
  if (model.has_v5) {
    cases.push_back(base);
    cases.back().source.config_path = DataPath(folder + "/config_v5.json");
  }
  for (const HfModel::Variant& variant : model.variants) {
    Case made = base;
    made.golden = folder + "/golden_" + variant.name + ".safetensors";
    made.prompts = {"p0", "p1"};
    made.source.overrides = variant.overrides;
    if (variant.overrides.empty()) {
      made.source.config_path =
          DataPath(folder + "/config_" + variant.name + ".json");
    }
    cases.push_back(std::move(made));
  }
}

// A checkpoint in the layout of Meta or llama2.c.
Case Meta(const std::string& name, const std::string& file,
          const std::string& decoder_model) {
  const std::string folder = "models/" + name;
  return {.model = folder + "/" + file,
          .golden = folder + "/golden.safetensors",
          .prefix = "",
          .tolerance = 2e-4f,
          .greedy_margin = 1e-3f,
          .prompts = {"p0", "p1", "p2"},
          .source = {.decoder_model = decoder_model}};
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      Meta("stories110m", "stories110M.pt", ""),
      Meta("llama3_2_meta", "consolidated.00.pth", "llama3_2-1b_instruct")};
  for (const HfModel& model : HfModels()) AddHf(model, cases);
  for (const char* type : {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"})
    cases.push_back(Gguf("llama", type, "h64"));
  for (const char* type : {"Q4_K", "Q6_K", "Q4_K_M"})
    cases.push_back(Gguf("llama", type, "h256"));
  for (const char* type : {"Q8_0", "Q4_1"})
    cases.push_back(Gguf("qwen2", type, "h64"));
  return cases;
}

void PrintTo(const Case& value, std::ostream* out) {
  *out << value.model << " " << value.prefix << value.golden;
}

class GoldenLogits : public ::testing::TestWithParam<Case> {
 protected:
  LoadedModel Load(CompileOptions options) const {
    options.source = GetParam().source;
    return LoadModel(DataPath(GetParam().model), options);
  }
};

float MaxAbsError(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  if (a.size() != b.size()) return INFINITY;
  float worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    // A NaN must not pass as small.
    if (!(std::fabs(a[i] - b[i]) <= worst)) worst = std::fabs(a[i] - b[i]);
  }
  return worst;
}

TEST_P(GoldenLogits, MatchForEveryStepSizeAndAreBitIdentical) {
  const GoldenTensors golden(DataPath(GetParam().golden));
  for (const std::string& prompt : GetParam().prompts) {
    const std::string name = GetParam().prefix + prompt;
    const std::vector<int32_t> ids = golden.Ints(name + ".input_ids");
    const std::vector<float> expected = golden.Floats(name + ".logits");
    ASSERT_FALSE(ids.empty());
    const auto tokens = static_cast<int64_t>(ids.size());
    std::vector<float> first;
    for (const int64_t step : {int64_t{1}, int64_t{7}, int64_t{32}, tokens}) {
      const LoadedModel model = Load(AllLogits(step, std::max(tokens, step)));
      ASSERT_NE(model.session, nullptr);
      const std::vector<float> logits = AllLogitsOf(*model.session, ids);
      EXPECT_LE(MaxAbsError(logits, expected), GetParam().tolerance)
          << name << " step " << step;
      if (first.empty()) first = logits;
      EXPECT_TRUE(first == logits)
          << name << ": step " << step << " differs from step 1";
    }
  }
}

TEST_P(GoldenLogits, GreedyTokensMatch) {
  const GoldenTensors golden(DataPath(GetParam().golden));
  for (const std::string& prompt : GetParam().prompts) {
    const std::string name = GetParam().prefix + prompt;
    const std::vector<int32_t> ids = golden.Ints(name + ".input_ids");
    const std::vector<int32_t> expected = golden.Ints(name + ".greedy");
    const std::vector<float> margins = golden.Floats(name + ".greedy_margin");
    CompileOptions options;
    options.prefill_ar_len = 16;
    options.max_context_len =
        static_cast<int64_t>(ids.size() + expected.size());
    const LoadedModel model = Load(options);
    ASSERT_NE(model.session, nullptr);
    const auto made = GreedyTokens(*model.session, ids,
                                   static_cast<uint32_t>(expected.size()));
    ASSERT_EQ(made.size(), expected.size());
    for (size_t i = 0;
         i < expected.size() && margins[i] > GetParam().greedy_margin; ++i)
      EXPECT_EQ(made[i], expected[i]) << name << " token " << i;
  }
}

// R1 where the norms of the family let it, R3 where heads are a power of two.
std::string RotatingRecipe(const std::string& model) {
  const auto is = [&](const char* name) {
    return model.find(name) != std::string::npos;
  };
  std::string recipe = R"({"name": "r", "defaults": {"scheme": "fp32"},)";
  if (!is("codegen") && !is("gemma2") && !is("gemma3"))
    recipe += R"("r1": "hadamard",)";
  if (!is("llama3_2_1b")) recipe += R"("r3": "hadamard",)";
  return recipe + R"("r2": "random"})";
}

TEST_P(GoldenLogits, MatchBehindRotations) {
  constexpr float kRounding = 1e-4f;
  const GoldenTensors golden(DataPath(GetParam().golden));
  const std::string name = GetParam().prefix + "p1";
  const std::vector<int32_t> ids = golden.Ints(name + ".input_ids");
  CompileOptions options = AllLogits(7, static_cast<int64_t>(ids.size()));
  options.recipe_json = RotatingRecipe(GetParam().model);
  const LoadedModel model = Load(options);
  ASSERT_NE(model.session, nullptr);
  const std::vector<float> logits = AllLogitsOf(*model.session, ids);
  EXPECT_LE(MaxAbsError(logits, golden.Floats(name + ".logits")),
            GetParam().tolerance + kRounding);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenLogits, ::testing::ValuesIn(Cases()),
                         [](const auto& instance) {
                           std::string name = instance.param.model + "_" +
                                              instance.param.golden +
                                              std::to_string(instance.index);
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) {
                                 return std::isalnum(c) == 0;
                               },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace hexllm::testing

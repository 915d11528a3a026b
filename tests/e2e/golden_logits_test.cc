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

Case Gguf(const std::string& type, const std::string& width) {
  return {.model = "gguf/llama/llama-" + width + "-" + type + ".gguf",
          .golden = "gguf/llama/golden-" + width + ".safetensors",
          .prefix = type + ".",
          .tolerance = 3e-4f,
          .greedy_margin = 0.01f};
}

Case Hf(const std::string& name) {
  return {.model = "models/" + name,
          .golden = "models/" + name + "/golden.safetensors",
          .prefix = "",
          .tolerance = 2e-4f,
          .greedy_margin = 1e-3f,
          .prompts = {"p0", "p1", "p2"}};
}

// The same weights under another configuration file.
Case HfVariant(const std::string& name, const std::string& config,
               const std::string& golden) {
  Case out = Hf(name);
  out.source.config_path = DataPath("models/" + name + "/" + config);
  out.golden = "models/" + name + "/" + golden;
  if (golden != "golden.safetensors") out.prompts = {"p0", "p1"};
  return out;
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      Hf("smollm2_135m"),
      HfVariant("smollm2_135m", "config_v5.json", "golden.safetensors"),
      Hf("llama3_2_1b"),
      HfVariant("llama3_2_1b", "config_v5.json", "golden.safetensors"),
      Hf("llama3_2_3b"),
      HfVariant("llama3_2_3b", "config_v5.json", "golden.safetensors"),
      HfVariant("llama3_2_3b", "config_linear.json",
                "golden_linear.safetensors"),
      HfVariant("llama3_2_3b", "config_norope_scaling.json",
                "golden_norope_scaling.safetensors"),
  };
  for (const char* type : {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"})
    cases.push_back(Gguf(type, "h64"));
  for (const char* type : {"Q4_K", "Q6_K", "Q4_K_M"})
    cases.push_back(Gguf(type, "h256"));
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

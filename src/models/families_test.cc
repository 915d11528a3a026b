// What the configurations of the families say, read from those of
// tests/data/models, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/model.h"
#include "tests/support/golden_tensors.h"

namespace hexllm::models {
namespace {

using ::hexllm::testing::DataPath;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json ConfigOf(const std::string& model) {
  auto json = ReadJsonFile(DataPath("models/" + model + "/config.json"));
  EXPECT_TRUE(json.ok()) << json.error().message;
  return json.ok() ? std::move(*json) : Json::object();
}

Result<DecoderConfig> Read(const Json& json) {
  const ModelSpec* spec =
      FindByHfArchitecture(json["architectures"][0].get<std::string>());
  EXPECT_NE(spec, nullptr);
  return spec->from_hf(json);
}

DecoderConfig MustRead(const Json& json) {
  auto config = Read(json);
  EXPECT_TRUE(config.ok()) << config.error().message;
  return config.ok() ? std::move(*config) : DecoderConfig{};
}

std::vector<uint32_t> WindowsOf(const DecoderConfig& config) {
  std::vector<uint32_t> windows;
  for (const LayerConfig& layer : config.layer_configs)
    windows.push_back(config.windows[layer.window]);
  return windows;
}

// RoPE bases; 0 = none.
std::vector<double> ThetasOf(const DecoderConfig& config) {
  std::vector<double> thetas;
  for (const LayerConfig& layer : config.layer_configs)
    thetas.push_back(layer.rope ? config.ropes[*layer.rope].theta : 0);
  return thetas;
}

TEST(Families, Gemma3HasTwoWindowsAndTwoRopes) {
  const DecoderConfig config = MustRead(ConfigOf("gemma3_1b"));
  EXPECT_THAT(WindowsOf(config), ElementsAre(16, 16, 16, 16, 16, 0, 16, 16));
  EXPECT_THAT(ThetasOf(config),
              ElementsAre(1e4, 1e4, 1e4, 1e4, 1e4, 1e6, 1e4, 1e4));
  EXPECT_DOUBLE_EQ(config.attention_scale, 1 / std::sqrt(20.0));
}

TEST(Families, LayerTypesWinOverThePattern) {
  Json json = ConfigOf("gemma2_2b");
  EXPECT_THAT(WindowsOf(MustRead(json)), ElementsAre(16, 0, 16, 0));
  json["layer_types"] = {"full_attention", "sliding_attention",
                         "full_attention", "full_attention"};
  EXPECT_THAT(WindowsOf(MustRead(json)), ElementsAre(0, 16, 0, 0));
}

TEST(Families, WindowsThatHideNothingAreNone) {
  Json json = ConfigOf("phi4_mini");
  EXPECT_THAT(MustRead(json).windows, ElementsAre(0u));
  json["sliding_window"] = 2047;
  EXPECT_THAT(MustRead(json).windows, ElementsAre(2047u));
  json["sliding_window"] = 2048;  // max_position_embeddings
  EXPECT_THAT(MustRead(json).windows, ElementsAre(0u));
}

TEST(Families, QwenUsesItsWindowWhenToldTo) {
  Json json = ConfigOf("qwen2_5_0_5b");
  json["sliding_window"] = 16;
  json["max_window_layers"] = 1;
  EXPECT_THAT(WindowsOf(MustRead(json)), ElementsAre(0, 0, 0));
  json["use_sliding_window"] = true;
  EXPECT_THAT(WindowsOf(MustRead(json)), ElementsAre(0, 16, 16));
}

TEST(Families, ANullWindowIsNoneForQwenAndAMissingOneTheDefault) {
  for (const char* model : {"qwen2_5_0_5b", "qwen3_0_6b", "gemma3_1b"}) {
    Json json = ConfigOf(model);
    json["use_sliding_window"] = true;
    json["max_window_layers"] = 0;
    json["max_position_embeddings"] = 8192;
    json.erase("sliding_window");
    json.erase("layer_types");
    EXPECT_EQ(WindowsOf(MustRead(json))[0], 4096u) << model;
    json["sliding_window"] = nullptr;
    if (model == std::string_view("gemma3_1b")) continue;  // refused
    EXPECT_THAT(MustRead(json).windows, ElementsAre(0u)) << model;
  }
}

TEST(Families, SmolLm3CountsItsLayersWithoutRope) {
  Json json = ConfigOf("smollm3_3b");
  EXPECT_THAT(ThetasOf(MustRead(json)), ElementsAre(5e6, 5e6, 5e6, 0, 5e6));
  json.erase("no_rope_layers");
  json["no_rope_layer_interval"] = 2;
  EXPECT_THAT(ThetasOf(MustRead(json)), ElementsAre(5e6, 0, 5e6, 0, 5e6));
}

TEST(Families, DefaultsAreThoseOfTheFamily) {
  Json json = ConfigOf("gemma_2b");
  json.erase("tie_word_embeddings");
  EXPECT_EQ(MustRead(json).head, Head::kTied);
  json = ConfigOf("qwen3_0_6b");
  json.erase("tie_word_embeddings");
  json.erase("head_dim");
  EXPECT_EQ(MustRead(json).head, Head::kUntied);
  EXPECT_EQ(MustRead(json).head_dim, 128);
  json = ConfigOf("glm_edge_1_5b");
  json.erase("partial_rotary_factor");
  EXPECT_EQ(MustRead(json).ropes[0].rotary_dim, 4);
}

TEST(Families, GemmasGeluIsTheTanhFormUnlessNamed) {
  Json json = ConfigOf("gemma_2b");
  EXPECT_EQ(MustRead(json).activation, HiddenActivation::kGeluTanh);
  json["hidden_activation"] = "gelu";
  EXPECT_EQ(MustRead(json).activation, HiddenActivation::kGeluErf);
}

struct BadConfig {
  std::string model;
  std::string key;
  Json value;
  ErrorCode code;
  std::string message;
};

TEST(Families, SpoiltConfigurationsNameTheKey) {
  const std::vector<BadConfig> cases = {
      {"qwen2_5_0_5b", "hidden_act", "relu6", ErrorCode::kUnsupported,
       "'hidden_act': expected one of silu"},
      {"qwen2_5_0_5b", "use_mrope", true, ErrorCode::kUnsupported,
       "'use_mrope'"},
      {"qwen3_0_6b", "rope_scaling", Json{{"rope_type", "yarn"}, {"factor", 4}},
       ErrorCode::kUnsupported, "'rope_type': expected one of default"},
      {"gemma2_2b", "layer_types", Json{"full_attention"}, ErrorCode::kBadInput,
       "'layer_types': expected a list of 4"},
      {"gemma2_2b", "layer_types",
       Json{"full_attention", "x", "full_attention", "full_attention"},
       ErrorCode::kUnsupported, "found \"x\""},
      {"gemma2_2b", "sliding_window", nullptr, ErrorCode::kBadInput,
       "'sliding_window': expected the tokens"},
      {"gemma3_1b", "sliding_window", nullptr, ErrorCode::kBadInput,
       "'sliding_window': expected the tokens"},
      {"gemma2_2b", "sliding_window", 0, ErrorCode::kBadInput,
       "'sliding_window': expected 1"},
      {"gemma2_2b", "attn_logit_softcapping", -1, ErrorCode::kBadInput,
       "'attn_logit_softcapping'"},
      {"gemma2_2b", "query_pre_attn_scalar", 0, ErrorCode::kBadInput,
       "'query_pre_attn_scalar'"},
      {"gemma_2b", "hidden_activation", "mish", ErrorCode::kUnsupported,
       "'hidden_activation'"},
      {"gemma3_1b", "use_bidirectional_attention", true,
       ErrorCode::kUnsupported, "'use_bidirectional_attention'"},
      {"gemma3_1b", "sliding_window_pattern", 0, ErrorCode::kBadInput,
       "'sliding_window_pattern'"},
      {"gemma3_1b", "rope_parameters",
       Json{{"full_attention", {{"rope_theta", 1e6}}}}, ErrorCode::kBadInput,
       "a set for sliding_attention"},
      {"granite3_3_2b", "logits_scaling", 0, ErrorCode::kBadInput,
       "'logits_scaling'"},
      {"smollm3_3b", "no_rope_layers", Json{1, 1}, ErrorCode::kBadInput,
       "'no_rope_layers': expected a list of 5"},
      {"smollm3_3b", "no_rope_layers", Json{1, 1, 2, 1, 1},
       ErrorCode::kBadInput, "expected 0 or 1, found 2"},
      {"codegen2_1b", "mp_num", 3, ErrorCode::kBadInput,
       "'mp_num': expected a divisor of n_head 8, found 3"},
      {"codegen2_1b", "rotary_dim", 10, ErrorCode::kBadInput, "'rotary_dim'"},
      {"codegen2_1b", "n_layer", 0, ErrorCode::kBadInput, "'n_layer'"},
      {"codegen2_1b", "n_inner", -1, ErrorCode::kBadInput, "'n_inner'"},
      {"codegen2_1b", "n_embd", INT64_MIN, ErrorCode::kBadInput,
       "divisor of n_embd -9223372036854775808"},
      {"codegen2_1b", "n_head", 7, ErrorCode::kBadInput, "'n_head'"},
  };
  for (const BadConfig& bad : cases) {
    Json json = ConfigOf(bad.model);
    json[bad.key] = bad.value;
    const auto config = Read(json);
    ASSERT_FALSE(config.ok()) << bad.model << " " << bad.key;
    EXPECT_EQ(config.error().code, bad.code) << config.error().message;
    EXPECT_THAT(config.error().message, HasSubstr(bad.message));
  }
}

}  // namespace
}  // namespace hexllm::models

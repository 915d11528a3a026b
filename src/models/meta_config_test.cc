#include "models/meta_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model_source.h"
#include "tests/support/pytorch_builder.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/temp_dir.h"

namespace hexllm::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::PytorchBuilder;
using testing::PytorchFrom;
using testing::SafetensorsBuilder;
using testing::TempDir;
namespace pickle = testing::pickle;

constexpr const char* kParams =
    R"({"dim":8,"n_layers":1,"n_heads":2,"n_kv_heads":1,"multiple_of":8,
        "rope_theta":500000.0})";

// The part of a checkpoint that the configuration looks at.
std::string Weights() {
  return PytorchBuilder()
      .Add("tok_embeddings.weight", {16, 8}, std::string(512, 'x'))
      .Add("output.weight", {16, 8}, std::string(512, 'y'))
      .Build();
}

// Opens a folder of Weights() and `params` (none when empty).
Result<ModelSource> Open(const TempDir& dir, const std::string& params,
                         const SourceOptions& options = {}) {
  dir.Write("consolidated.00.pth", Weights());
  if (!params.empty()) dir.Write("params.json", params);
  return OpenModel(dir.path(), options);
}

std::string ErrorOf(const Result<ModelSource>& source, ErrorCode code) {
  if (source.ok()) return "no error";
  EXPECT_EQ(source.error().code, code) << source.error().message;
  EXPECT_EQ(source.error().message.find('\n'), std::string::npos);
  return source.error().message;
}

TEST(MetaConfig, ReadsParamsAndDefaults) {
  const TempDir dir;
  const auto source = Open(dir, kParams);
  ASSERT_TRUE(source.ok()) << source.error().message;
  const DecoderConfig& config = source->config;
  EXPECT_EQ(config.vocab, 16);
  EXPECT_EQ(config.head_dim, 4);
  EXPECT_EQ(config.kv_heads, 1);
  EXPECT_EQ(config.ffn, 24);  // int(2 * 4 * 8 / 3) = 21, up to a multiple of 8
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_EQ(config.ropes[0].theta, 500000.0);
  EXPECT_EQ(config.ropes[0].scaling, RopeScaling::kDefault);
  EXPECT_EQ(config.max_positions, 8192);
  EXPECT_EQ(config.head, Head::kUntied);
  EXPECT_EQ(source->naming.rope_layout, RopeLayout::kInterleaved);
  EXPECT_EQ(source->spec->name, "llama");
}

TEST(MetaConfig, MultipliesAndRoundsTheFfn) {
  const TempDir dir;
  const auto ffn = [&](const std::string& setting) {
    const auto source = Open(dir, kParams, {.overrides = {setting}});
    return source.ok() ? source->config.ffn : -1;
  };
  EXPECT_EQ(ffn("ffn_dim_multiplier=1.3"), 32);  // int(1.3 * 21) = 27
  EXPECT_EQ(ffn("hidden_dim=172"), 172);
  EXPECT_EQ(ffn("multiple_of=0"), -1);
}

TEST(MetaConfig, TheScalingFactorComesFromTheModelsNameOrAKey) {
  const TempDir dir;
  const auto scaled = [&](SourceOptions options) {
    options.overrides.push_back("use_scaled_rope=true");
    return Open(dir, kParams, options);
  };
  const auto named = scaled({.decoder_model = "llama3_2-1b_instruct"});
  ASSERT_TRUE(named.ok()) << named.error().message;
  EXPECT_EQ(named->config.ropes[0].scaling, RopeScaling::kLlama3);
  EXPECT_EQ(named->config.ropes[0].factor, 32);
  EXPECT_EQ(named->config.ropes[0].original_positions, 8192);
  EXPECT_EQ(named->config.max_positions, 131072);
  const auto keyed = scaled({.overrides = {"rope_scale_factor=8"}});
  ASSERT_TRUE(keyed.ok()) << keyed.error().message;
  EXPECT_EQ(keyed->config.ropes[0].factor, 8);
  EXPECT_THAT(
      ErrorOf(scaled({}), ErrorCode::kBadInput),
      AllOf(HasSubstr("rope_scale_factor"), HasSubstr("--decoder-model")));
  EXPECT_THAT(
      ErrorOf(Open(dir, kParams, {.overrides = {"rope_scale_factor=8"}}),
              ErrorCode::kBadInput),
      HasSubstr("found it alone"));
}

TEST(MetaConfig, TheFilesOwnArgumentsComeBeforeParamsJson) {
  const TempDir dir;
  const std::string table =
      pickle::Of({.elements = 128, .shape = {16, 8}, .strides = {8, 1}});
  dir.Write(
      "ckpt.pt",
      PytorchFrom(
          pickle::kStart +
              pickle::Dict(
                  pickle::Text("model") +
                  pickle::Dict(pickle::Text("tok_embeddings.weight") + table +
                               pickle::Text("output.weight") + table) +
                  pickle::Text("model_args") +
                  pickle::Dict(pickle::Text("dim") + pickle::Int(8) +
                               pickle::Text("n_layers") + pickle::Int(1) +
                               pickle::Text("n_heads") + pickle::Int(4) +
                               pickle::Text("n_kv_heads") + pickle::kNone +
                               pickle::Text("max_seq_len") +
                               pickle::Int(256))) +
              pickle::kStop,
          {std::string(512, 'x')}));
  dir.Write("params.json", kParams);
  const auto inside = OpenModel(dir.path(), {});
  ASSERT_TRUE(inside.ok()) << inside.error().message;
  EXPECT_EQ(inside->config.heads, 4);
  EXPECT_EQ(inside->config.kv_heads, 4);
  EXPECT_EQ(inside->config.max_positions, 256);
  EXPECT_EQ(inside->config.head, Head::kTied) << "one storage";
  const auto named =
      OpenModel(dir.path(), {.params_path = dir.File("params.json")});
  ASSERT_TRUE(named.ok()) << named.error().message;
  EXPECT_EQ(named->config.heads, 2);
}

TEST(MetaConfig, SaysWhatIsMissingOrDoesNotApply) {
  const TempDir dir;
  EXPECT_THAT(ErrorOf(Open(dir, ""), ErrorCode::kBadInput),
              AllOf(HasSubstr("params.json"), HasSubstr("--params")));
  EXPECT_THAT(ErrorOf(Open(dir, R"({"dim":8})"), ErrorCode::kBadInput),
              AllOf(HasSubstr("params"), HasSubstr("'n_layers'")));
  EXPECT_THAT(ErrorOf(Open(dir, kParams, {.overrides = {"n_heads=3"}}),
                      ErrorCode::kBadInput),
              HasSubstr("'n_heads'"));
  EXPECT_THAT(ErrorOf(Open(dir, kParams, {.overrides = {"rope_scale_facto=8"}}),
                      ErrorCode::kUsage),
              HasSubstr("'rope_scale_facto'"));
  for (const char* key :
       {"dim", "n_layers", "n_kv_heads", "hidden_dim", "max_seq_len"}) {
    EXPECT_THAT(
        ErrorOf(Open(dir, kParams, {.overrides = {std::string(key) + "=-4"}}),
                ErrorCode::kBadInput),
        HasSubstr(std::string("'") + key + "'"));
  }
  EXPECT_THAT(ErrorOf(Open(dir, kParams, {.config_path = "config.json"}),
                      ErrorCode::kUsage),
              HasSubstr("--params"));
  EXPECT_THAT(ErrorOf(Open(dir, kParams, {.params_path = dir.File("gone")}),
                      ErrorCode::kEnvironment),
              HasSubstr("gone"));
  const TempDir other;
  other.Write("model.safetensors",
              SafetensorsBuilder().Add("w", "F32", {1}, "1234").Build());
  EXPECT_THAT(
      ErrorOf(OpenModel(other.path(), {.params_path = dir.File("params.json")}),
              ErrorCode::kUsage),
      HasSubstr("Meta's layout"));
}

}  // namespace
}  // namespace hexllm::models

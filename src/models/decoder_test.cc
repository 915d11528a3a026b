#include "models/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/interpret.h"
#include "ir/verify.h"
#include "models/model_source.h"
#include "tests/support/tiny_llama.h"

namespace hexllm::models {
namespace {

using ::hexllm::testing::TempDir;
using ::hexllm::testing::TinyLlama;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr GraphRequest kPrefill = {GraphKind::kPrefill, 4, 4, LogitsRows::kAll};
constexpr GraphRequest kStep = {GraphKind::kKv, 1, 8, LogitsRows::kAll};

Result<ir::Module> BuildFrom(const std::string& path,
                             std::vector<GraphRequest> requests,
                             SourceOptions options = {}) {
  HX_ASSIGN_OR_RETURN(const ModelSource source, OpenModel(path, options));
  return BuildDecoder(source, requests);
}

// The error of building a folder; fails the test when there is none.
Error FolderError(const TinyLlama& model, SourceOptions options = {}) {
  const TempDir dir;
  model.WriteFolder(dir);
  auto built = BuildFrom(dir.path(), {kPrefill}, std::move(options));
  EXPECT_FALSE(built.ok());
  return built.ok() ? Error{ErrorCode::kUsage, ""} : built.error();
}

// Logits of tokens 3, 9, 27, 14 in one step from nothing.
std::vector<float> LogitsOf(const std::string& path) {
  auto source = OpenModel(path, {});
  EXPECT_TRUE(source.ok()) << source.error().message;
  if (!source.ok()) return {};
  auto module = BuildDecoder(*source, std::vector<GraphRequest>{kPrefill});
  EXPECT_TRUE(module.ok()) << module.error().message;
  if (!module.ok()) return {};
  const ir::Graph& graph = module->graphs[0];
  std::vector<ir::HostTensor> inputs;
  for (const ir::GraphIo& io : graph.inputs) {
    ir::HostTensor tensor{graph.type(io.value), {}, {}};
    const auto count = static_cast<size_t>(*NumElements(tensor.type.shape));
    if (io.role.kind == RoleKind::kToken) {
      tensor.ints = {3, 9, 27, 14};
    } else if (io.role.kind == RoleKind::kRopeCos) {
      tensor.floats.assign(count, 0.6f);
    } else if (io.role.kind == RoleKind::kRopeSin) {
      tensor.floats.assign(count, 0.8f);
      tensor.floats[2] = -0.8f;  // rows differ, so that the rotation matters
    } else {
      tensor.floats.assign(count, 0.0f);
    }
    inputs.push_back(std::move(tensor));
  }
  return ir::Interpret(*module, graph, inputs)[0].floats;
}

TEST(Decoder, BuildsVerifiedGraphsThatShareWeights) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const auto source = OpenModel(dir.path(), {});
  ASSERT_TRUE(source.ok()) << source.error().message;
  const auto module =
      BuildDecoder(*source, std::vector<GraphRequest>{kPrefill, kStep});
  ASSERT_TRUE(module.ok()) << module.error().message;
  EXPECT_TRUE(ir::Verify(*module).ok());
  ASSERT_EQ(module->graphs.size(), 2u);
  EXPECT_EQ(module->graphs[0].name, "prefill_4");
  EXPECT_EQ(module->graphs[1].name, "kv");
  // 9 per layer, the table (tied) and the last norm: nothing is bound twice.
  EXPECT_EQ(module->constants.size(), 2u * 9u + 2u);
}

TEST(Decoder, LogitsRowsFollowTheRequest) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const auto source = OpenModel(dir.path(), {});
  ASSERT_TRUE(source.ok()) << source.error().message;
  const auto module = BuildDecoder(
      *source, std::vector<GraphRequest>{
                   {GraphKind::kPrefill, 4, 8, LogitsRows::kLast},
                   {GraphKind::kPrefill, 2, 8, LogitsRows::kNone}});
  ASSERT_TRUE(module.ok()) << module.error().message;
  const ir::Graph& last = module->graphs[0];
  const ir::ValueId logits = last.FindIo({RoleKind::kLogits});
  ASSERT_TRUE(logits.valid());
  EXPECT_EQ(last.type(logits).shape, (Shape{1, 32}));
  EXPECT_FALSE(module->graphs[1].FindIo({RoleKind::kLogits}).valid());
}

std::vector<std::string> RolesOf(const std::vector<ir::GraphIo>& list) {
  std::vector<std::string> roles;
  for (const ir::GraphIo& io : list) roles.push_back(RoleToString(io.role));
  return roles;
}

TEST(Decoder, PartsOfAStepPassHiddenStatesOn) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  GraphRequest first = kStep;
  first.shards = 2;
  GraphRequest last = first;
  last.shard = 1;
  const auto module = BuildFrom(dir.path(), {first, last});
  ASSERT_TRUE(module.ok()) << module.error().message;
  EXPECT_TRUE(ir::Verify(*module).ok());
  const ir::Graph& a = module->graphs[0];
  const ir::Graph& b = module->graphs[1];
  EXPECT_EQ(a.name, "kv_s0");
  EXPECT_EQ(b.name, "kv_s1");
  EXPECT_EQ(b.shard, 1u);
  EXPECT_THAT(RolesOf(a.inputs),
              ElementsAre("token", "rope_cos[0]", "rope_sin[0]", "mask[0]",
                          "k_in[0]", "v_in[0]"));
  EXPECT_THAT(RolesOf(a.outputs),
              ElementsAre("hidden_out", "k_out[0]", "v_out[0]"));
  EXPECT_THAT(RolesOf(b.inputs),
              ElementsAre("hidden_in", "rope_cos[0]", "rope_sin[0]", "mask[0]",
                          "k_in[1]", "v_in[1]"));
  EXPECT_THAT(RolesOf(b.outputs),
              ElementsAre("logits", "k_out[1]", "v_out[1]"));
  // Encodings go by name.
  EXPECT_EQ(b[b.inputs[0].value].name, a[a.outputs[0].value].name);
}

TEST(Decoder, TheHostCanLookTokensUp) {
  const TempDir dir;
  TinyLlama model;
  model.config["tie_word_embeddings"] = false;
  model.Add("lm_head.weight", {32, 16});
  model.WriteFolder(dir);
  const auto source = OpenModel(dir.path(), {});
  ASSERT_TRUE(source.ok()) << source.error().message;
  GraphRequest request = kPrefill;
  request.embedding = EmbeddingPlace::kHost;
  const auto module = BuildDecoder(*source, std::vector<GraphRequest>{request});
  ASSERT_TRUE(module.ok()) << module.error().message;
  const ir::Graph& graph = module->graphs[0];
  const ir::ValueId embedding = graph.FindIo({RoleKind::kEmbedding});
  ASSERT_TRUE(embedding.valid());
  EXPECT_EQ(graph.type(embedding).shape, (Shape{4, 16}));
  EXPECT_EQ(graph[embedding].name, "model.embed_tokens");
  EXPECT_FALSE(graph.FindIo({RoleKind::kToken}).valid());
  const auto table = EmbeddingTable(*source);
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->type.shape, (Shape{32, 16}));
}

TEST(Decoder, AFewRowsOfTheVocabularyAreEnoughForAProbe) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  GraphRequest request = kPrefill;
  request.vocab_rows = 5;
  request.shards = 2;
  request.shard = 1;
  const auto module = BuildFrom(dir.path(), {request});
  ASSERT_TRUE(module.ok()) << module.error().message;
  EXPECT_TRUE(ir::Verify(*module).ok());
  const ir::Graph& graph = module->graphs[0];
  EXPECT_EQ(graph.type(graph.FindIo({RoleKind::kLogits})).shape, (Shape{4, 5}));
}

TEST(Decoder, GgufAndSafetensorsGiveTheSameLogits) {
  const TempDir folder;
  const TempDir gguf;
  const TinyLlama model;
  model.WriteFolder(folder);
  const auto from_folder = LogitsOf(folder.path());
  const auto from_gguf = LogitsOf(gguf.Write("model.gguf", model.BuildGguf()));
  ASSERT_EQ(from_folder.size(), 4u * 32u);
  ASSERT_EQ(from_gguf.size(), from_folder.size());
  for (size_t i = 0; i < from_folder.size(); ++i)
    EXPECT_FLOAT_EQ(from_folder[i], from_gguf[i]) << i;
}

TEST(Decoder, NamesAMissingTensor) {
  TinyLlama model;
  model.tensors.erase("model.layers.1.mlp.up_proj.weight");
  const Error error = FolderError(model);
  EXPECT_EQ(error.code, ErrorCode::kBadInput);
  EXPECT_THAT(
      error.message,
      AllOf(HasSubstr("'model.layers.1.mlp.up_proj.weight'"),
            HasSubstr("expected shape [24,16]"), HasSubstr("no such tensor")));
}

TEST(Decoder, NamesAMisshapenTensor) {
  TinyLlama model;
  model.Add("model.layers.0.self_attn.k_proj.weight", {4, 16});
  const Error error = FolderError(model);
  EXPECT_EQ(error.code, ErrorCode::kBadInput);
  EXPECT_THAT(error.message, AllOf(HasSubstr("k_proj.weight"),
                                   HasSubstr("expected shape [8,16]"),
                                   HasSubstr("found [4,16]")));
}

TEST(Decoder, NamesAnExtraTensor) {
  TinyLlama model;
  model.Add("model.layers.2.mlp.up_proj.weight", {24, 16});
  const Error error = FolderError(model);
  EXPECT_EQ(error.code, ErrorCode::kBadInput);
  EXPECT_THAT(error.message, HasSubstr("'model.layers.2.mlp.up_proj.weight'"));
}

TEST(Decoder, IgnoresInverseFrequencies) {
  TinyLlama model;
  model.Add("model.layers.0.self_attn.rotary_emb.inv_freq", {2});
  const TempDir dir;
  model.WriteFolder(dir);
  const auto built = BuildFrom(dir.path(), {kPrefill});
  EXPECT_TRUE(built.ok()) << built.error().message;
}

TEST(Decoder, TiedModelWithADifferentHeadIsRefused) {
  TinyLlama model;
  model.Add("lm_head.weight", {32, 16});
  EXPECT_THAT(
      FolderError(model).message,
      AllOf(HasSubstr("lm_head.weight"), HasSubstr("tie_word_embeddings")));
  model.tensors["lm_head.weight"].data =
      model.tensors["model.embed_tokens.weight"].data;
  const TempDir dir;
  model.WriteFolder(dir);
  const auto built = BuildFrom(dir.path(), {kPrefill});
  EXPECT_TRUE(built.ok()) << built.error().message;
}

TEST(Decoder, UntiedModelWithoutAHeadIsRefused) {
  TinyLlama model;
  model.config["tie_word_embeddings"] = false;
  EXPECT_THAT(FolderError(model).message,
              AllOf(HasSubstr("lm_head.weight"), HasSubstr("no such tensor")));
}

TEST(Decoder, BiasesAreBoundWhenTheConfigurationSaysSo) {
  TinyLlama model;
  model.config["attention_bias"] = true;
  EXPECT_THAT(FolderError(model).message, HasSubstr("q_proj.bias"));
  for (const char* layer :
       {"model.layers.0.self_attn.", "model.layers.1.self_attn."}) {
    model.Add(std::string(layer) + "q_proj.bias", {16});
    model.Add(std::string(layer) + "k_proj.bias", {8});
    model.Add(std::string(layer) + "v_proj.bias", {8});
    model.Add(std::string(layer) + "o_proj.bias", {16});
  }
  const TempDir dir;
  model.WriteFolder(dir);
  const auto built = BuildFrom(dir.path(), {kPrefill});
  EXPECT_TRUE(built.ok()) << built.error().message;
}

TEST(ModelSource, UnknownArchitectureIsUnsupported) {
  TinyLlama model;
  model.config["architectures"] = {"MambaForCausalLM"};
  const Error error = FolderError(model);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, AllOf(HasSubstr("LlamaForCausalLM"),
                                   HasSubstr("'MambaForCausalLM'")));
}

TEST(ModelSource, OverridesReplaceKeys) {
  const Error error =
      FolderError(TinyLlama(), {.overrides = {"num_hidden_layers=3"}});
  EXPECT_THAT(error.message, HasSubstr("model.layers.2."));
  EXPECT_EQ(FolderError(TinyLlama(), {.overrides = {"=3"}}).code,
            ErrorCode::kUsage);
}

// The RoPE of TinyLlama with `members` on top of its configuration.
Result<RopeConfig> RopeWith(const Json& members,
                            const std::vector<std::string>& overrides) {
  const TempDir dir;
  TinyLlama model;
  for (const auto& [key, value] : members.items()) model.config[key] = value;
  model.WriteFolder(dir);
  auto source = OpenModel(dir.path(), {.overrides = overrides});
  if (!source.ok()) return std::move(source).error();
  return source->config.ropes[0];
}

TEST(ModelSource, OverridesReachIntoObjects) {
  const Json linear = {{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}};
  const auto set = RopeWith(linear, {"rope_scaling.factor=8"});
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->factor, 8);
  EXPECT_EQ(set->scaling, RopeScaling::kLinear);
  const auto made =
      RopeWith({}, {"rope_scaling.factor=4", "rope_scaling.rope_type=linear"});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->factor, 4);
  for (const char* bad : {"rope_scaling..factor=1", "rope_scaling.=1", ".a=1",
                          "hidden_act.b=1"}) {
    const auto rope = RopeWith(linear, {bad});
    ASSERT_FALSE(rope.ok()) << bad;
    EXPECT_EQ(rope.error().code, ErrorCode::kUsage) << bad;
    EXPECT_THAT(rope.error().message, HasSubstr("expected the name of a key"));
  }
}

TEST(ModelSource, OverridesThatChangeNothingAreRefused) {
  const Json parameters = {
      {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5000}}}};
  const std::tuple<Json, const char*, const char*> cases[] = {
      {Json::object(), "nosuchkey=3", "'nosuchkey'"},
      {Json::object(), "mp_num=4", "'mp_num'"},
      {Json::object(), "rope_scaling.rope_typ=linear",
       "'rope_scaling.rope_typ'"},
      {parameters, "rope_theta=7", "'rope_theta'"},
      {parameters, "rope_scaling={\"type\":\"linear\",\"factor\":2}",
       "'rope_scaling'"},
  };
  for (const auto& [members, setting, key] : cases) {
    const auto rope = RopeWith(members, {setting});
    ASSERT_FALSE(rope.ok()) << setting;
    EXPECT_EQ(rope.error().code, ErrorCode::kUsage) << setting;
    EXPECT_THAT(rope.error().message,
                AllOf(HasSubstr(key), HasSubstr("changes nothing")));
  }
  const auto inside = RopeWith(parameters, {"rope_parameters.rope_theta=7"});
  ASSERT_TRUE(inside.ok()) << inside.error().message;
  EXPECT_EQ(inside->theta, 7);
  EXPECT_TRUE(RopeWith({}, {R"(architectures=["LlamaForCausalLM"])"}).ok());
}

TEST(ModelSource, TheNamedModelDecidesWhereTheFilesCannot) {
  const TempDir dir;
  TinyLlama model;
  model.config["architectures"] = {"MambaForCausalLM"};
  model.WriteFolder(dir);
  const auto source = OpenModel(dir.path(), {.decoder_model = "granite"});
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source->spec->name, "granite");
  const Error error = FolderError(TinyLlama(), {.decoder_model = "granite"});
  EXPECT_EQ(error.code, ErrorCode::kUsage);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("--decoder-model granite"),
                    HasSubstr("the family llama"), HasSubstr("of granite")));
}

TEST(ModelSource, WrongTypesNameTheKey) {
  for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers",
                          "intermediate_size", "rms_norm_eps", "hidden_act"}) {
    TinyLlama model;
    model.config[key] = Json::array();
    const Error error = FolderError(model);
    EXPECT_EQ(error.code, ErrorCode::kBadInput) << key;
    EXPECT_THAT(error.message, AllOf(HasSubstr("config.json"), HasSubstr(key),
                                     HasSubstr("an array")));
  }
}

TEST(ModelSource, SizesOutOfRangeAreRefused) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"vocab_size", 0},
                                                 {"hidden_size", -4},
                                                 {"num_attention_heads", 0},
                                                 {"num_key_value_heads", 3},
                                                 {"num_hidden_layers", 1 << 20},
                                                 {"head_dim", int64_t{1} << 40},
                                                 {"rms_norm_eps", 0},
                                                 {"rope_theta", -1}}) {
    TinyLlama model;
    model.config[key] = value;
    EXPECT_EQ(FolderError(model).code, ErrorCode::kBadInput) << key;
  }
}

TEST(Models, EveryRowIsFoundByItsNames) {
  for (const ModelSpec* spec : AllModels()) {
    ASSERT_FALSE(spec->hf_architectures.empty());
    for (const auto name : spec->hf_architectures)
      EXPECT_EQ(FindByHfArchitecture(name), spec);
    for (const auto name : spec->gguf_architectures)
      EXPECT_EQ(FindByGgufArchitecture(name), spec);
    for (const auto name : spec->decoder_models)
      EXPECT_EQ(FindByDecoderModel(name), spec);
    EXPECT_NE(spec->from_hf, nullptr);
  }
}

}  // namespace
}  // namespace hexllm::models

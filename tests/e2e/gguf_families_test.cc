// GGUF files of the families of which tests/data has a Hugging Face folder,
// made here as llama.cpp's converter makes them (names, metadata, permuted q
// and k, norms of w + 1), give the logits of the folder, which
// golden_logits_test.cc compares. Written from llama.cpp's conversion script
// and loader; not compared with its files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/dequantize.h"
#include "checkpoint/checkpoint.h"
#include "tests/e2e/run_model.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/temp_dir.h"

namespace hexllm::testing {
namespace {

struct Family {
  std::string folder;  // of tests/data/models
  std::string architecture;
  bool permuted = false;  // q and k
  float norm_offset = 0;  // added to norms
  bool four_norms = false;
  // Metadata beside what all have.
  std::function<void(GgufBuilder& gguf, const Json& config)> more = {};
};

uint32_t Uint(const Json& config, const char* key) {
  return config.at(key).get<uint32_t>();
}
float Float(const Json& config, const char* key) {
  return config.at(key).get<float>();
}

void AddGranite(GgufBuilder& gguf, const Json& config) {
  gguf.Add<float>("granite.embedding_scale",
                  Float(config, "embedding_multiplier"))
      .Add<float>("granite.residual_scale",
                  Float(config, "residual_multiplier"))
      .Add<float>("granite.attention.scale",
                  Float(config, "attention_multiplier"))
      .Add<float>("granite.logit_scale", Float(config, "logits_scaling"));
}

void AddGlm(GgufBuilder& gguf, const Json& config) {
  gguf.Add<uint32_t>("chatglm.rope.dimension_count", Uint(config, "head_dim"));
}

void AddPhi(GgufBuilder& gguf, const Json& config) {
  const uint32_t head_dim =
      Uint(config, "hidden_size") / Uint(config, "num_attention_heads");
  gguf.Add<uint32_t>("phi3.rope.dimension_count", head_dim * 3 / 4)
      .Add<uint32_t>("phi3.rope.scaling.original_context_length",
                     Uint(config, "original_max_position_embeddings"))
      .Add<uint32_t>("phi3.attention.sliding_window",
                     Uint(config, "sliding_window"));
  for (const char* set : {"short", "long"}) {
    const auto factors = config.at("rope_scaling")
                             .at(std::string(set) + "_factor")
                             .get<std::vector<float>>();
    gguf.Tensor(
        {.name = std::string("rope_factors_") + set + ".weight",
         .dims = {factors.size()},
         .data = std::string(AsText(std::as_bytes(std::span(factors))))});
  }
}

// 1/sqrt(query_pre_attn_scalar) is not in the file: llama.cpp has the head size
// in its place, as the published models do.
void AddGemma2(GgufBuilder& gguf, const Json& config) {
  gguf.Add<uint32_t>("gemma2.attention.sliding_window",
                     Uint(config, "sliding_window"))
      .Add<float>("gemma2.attn_logit_softcapping",
                  Float(config, "attn_logit_softcapping"))
      .Add<float>("gemma2.final_logit_softcapping",
                  Float(config, "final_logit_softcapping"));
}

void AddGemma3(GgufBuilder& gguf, const Json& config) {
  gguf.Add<uint32_t>("gemma3.attention.sliding_window",
                     Uint(config, "sliding_window"));
}

std::vector<Family> Families() {
  return {
      {.folder = "qwen2_5_0_5b", .architecture = "qwen2"},
      {.folder = "qwen3_0_6b", .architecture = "qwen3"},
      {.folder = "granite3_3_2b",
       .architecture = "granite",
       .permuted = true,
       .more = AddGranite},
      {.folder = "smollm3_3b", .architecture = "smollm3", .permuted = true},
      {.folder = "gemma_2b", .architecture = "gemma", .norm_offset = 1},
      {.folder = "gemma2_2b",
       .architecture = "gemma2",
       .norm_offset = 1,
       .four_norms = true,
       .more = AddGemma2},
      {.folder = "gemma3_1b",
       .architecture = "gemma3",
       .norm_offset = 1,
       .four_norms = true,
       .more = AddGemma3},
      {.folder = "phi4_mini", .architecture = "phi3", .more = AddPhi},
      {.folder = "glm_edge_1_5b", .architecture = "chatglm", .more = AddGlm},
  };
}

std::string GgufName(std::string name, bool four_norms) {
  const std::pair<std::string, std::string> parts[] = {
      {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},
      {"model.layers.", "blk."},
      {"input_layernorm", "attn_norm"},
      {"post_attention_layernorm",
       four_norms ? "post_attention_norm" : "ffn_norm"},
      {"pre_feedforward_layernorm", "ffn_norm"},
      {"post_feedforward_layernorm", "post_ffw_norm"},
      {"self_attn.qkv_proj", "attn_qkv"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_up_proj", "ffn_up"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  for (const auto& [from, to] : parts) {
    if (const size_t at = name.find(from); at != std::string::npos)
      name.replace(at, from.size(), to);
  }
  return name;
}

// Rows (0, 1, .., D-1) of each head become (0, D/2, 1, D/2 + 1, ..).
std::vector<float> Permuted(const std::vector<float>& values, size_t rows,
                            size_t heads) {
  const size_t width = values.size() / rows;
  const size_t half = rows / heads / 2;
  std::vector<float> out(values.size());
  for (size_t row = 0; row < rows; ++row) {
    const size_t i = row % (2 * half);
    const size_t from = row - i + i % 2 * half + i / 2;
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from * width),
                width, out.begin() + static_cast<std::ptrdiff_t>(row * width));
  }
  return out;
}

std::vector<float> Values(const TensorView& tensor, const Family& family,
                          const Json& config) {
  std::vector<float> values(static_cast<size_t>(*NumElements(tensor.shape)));
  DequantizeRow(tensor.dtype, tensor.data, values);
  const auto has = [&](const char* part) {
    return tensor.name.find(part) != std::string::npos;
  };
  if (has("norm.weight"))
    for (float& value : values) value += family.norm_offset;
  const bool is_k = has("k_proj");
  if (!family.permuted || !(is_k || has("q_proj"))) return values;
  const size_t heads =
      Uint(config, is_k ? "num_key_value_heads" : "num_attention_heads");
  return Permuted(values, static_cast<size_t>(tensor.shape[0]), heads);
}

std::string BuildGguf(const Family& family, const Json& config,
                      const Checkpoint& checkpoint) {
  const std::string& arch = family.architecture;
  const uint32_t head_dim =
      config.contains("head_dim")
          ? Uint(config, "head_dim")
          : Uint(config, "hidden_size") / Uint(config, "num_attention_heads");
  GgufBuilder gguf;
  gguf.Add<std::string>("general.architecture", arch)
      .Add<std::string>("tokenizer.ggml.model", "none")
      .Add<uint32_t>(arch + ".embedding_length", Uint(config, "hidden_size"))
      .Add<uint32_t>(arch + ".block_count", Uint(config, "num_hidden_layers"))
      .Add<uint32_t>(arch + ".feed_forward_length",
                     Uint(config, "intermediate_size"))
      .Add<uint32_t>(arch + ".context_length",
                     Uint(config, "max_position_embeddings"))
      .Add<uint32_t>(arch + ".attention.head_count",
                     Uint(config, "num_attention_heads"))
      .Add<uint32_t>(arch + ".attention.head_count_kv",
                     Uint(config, "num_key_value_heads"))
      .Add<uint32_t>(arch + ".attention.key_length", head_dim)
      .Add<float>(arch + ".attention.layer_norm_rms_epsilon",
                  Float(config, "rms_norm_eps"))
      .Add<float>(arch + ".rope.freq_base", Float(config, "rope_theta"));
  if (family.more) family.more(gguf, config);
  for (const TensorView& tensor : checkpoint.tensors()) {
    const std::vector<float> values = Values(tensor, family, config);
    gguf.Tensor(
        {.name = GgufName(tensor.name, family.four_norms),
         .dims = {tensor.shape.rbegin(), tensor.shape.rend()},
         .data = std::string(AsText(std::as_bytes(std::span(values))))});
  }
  return gguf.Build();
}

// What GGUF cannot say of the tiny models: their query_pre_attn_scalar.
std::vector<std::string> HeadSizeForScores(const Family& family,
                                           const Json& config) {
  if (!family.four_norms) return {};
  return {"query_pre_attn_scalar=" + std::to_string(Uint(config, "head_dim"))};
}

std::vector<float> LogitsOf(const std::string& path,
                            const std::vector<std::string>& overrides,
                            const std::vector<int32_t>& ids) {
  CompileOptions options = AllLogits(16, 128);
  options.source.overrides = overrides;
  const LoadedModel model = LoadModel(path, options);
  if (model.session == nullptr) return {};
  return AllLogitsOf(*model.session, ids);
}

TEST(GgufFamilies, GiveTheLogitsOfTheFolder) {
  for (const Family& family : Families()) {
    SCOPED_TRACE(family.folder);
    const std::string folder = DataPath("models/" + family.folder);
    const auto config = ReadJsonFile(folder + "/config.json");
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(config.ok() && checkpoint.ok());
    const TempDir dir;
    const std::string path =
        dir.Write("model.gguf", BuildGguf(family, *config, *checkpoint));
    const std::vector<int32_t> ids =
        GoldenTensors(folder + "/golden.safetensors").Ints("p2.input_ids");
    const auto expected =
        LogitsOf(folder, HeadSizeForScores(family, *config), ids);
    const auto found = LogitsOf(path, {}, ids);
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 2e-4f) << i;
  }
}

}  // namespace
}  // namespace hexllm::testing

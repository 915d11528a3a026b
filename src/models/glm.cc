// GLM-Edge and GLM-4 in transformers' form: Llama with interleaved partial
// RoPE and a fused gate and up projection.
#include "models/families.h"
#include "models/gguf_config.h"
#include "models/hf_config.h"

namespace hexllm::models {
namespace {

Result<DecoderConfig> FromHf(const Json& json) {
  HX_ASSIGN_OR_RETURN(
      DecoderConfig config,
      ReadCommonHfConfig(
          json, {.head_dim = 128, .rope = {.partial_rotary_factor = 0.5}}));
  HX_ASSIGN_OR_RETURN(config.qkv_bias, ReadBias(json, "attention_bias"));
  return config;
}

Result<DecoderConfig> FromGguf(const Checkpoint& checkpoint,
                               std::string_view architecture) {
  return ReadCommonGgufConfig(checkpoint, architecture);
}

constexpr std::string_view kHfArchitectures[] = {"GlmForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"chatglm"};
constexpr std::string_view kDecoderModels[] = {"glm", "glm-1_5b"};

constexpr TensorAlias kHfNames[] = {
    {"model.layers.{}.mlp.gate_proj", "model.layers.{}.mlp.gate_up_proj",
     FusedPart::kGate},
    {"model.layers.{}.mlp.up_proj", "model.layers.{}.mlp.gate_up_proj",
     FusedPart::kUp},
};

constexpr TensorAlias kGgufNames[] = {
    {"model.layers.{}.mlp.gate_proj", "blk.{}.ffn_up", FusedPart::kGate},
    {"model.layers.{}.mlp.up_proj", "blk.{}.ffn_up", FusedPart::kUp},
};

}  // namespace

const ModelSpec kGlm = {
    .name = "glm",
    .hf_architectures = kHfArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .decoder_models = kDecoderModels,
    .from_hf = FromHf,
    .from_gguf = FromGguf,
    .hf_naming = {.aliases = kHfNames, .rope_layout = RopeLayout::kInterleaved},
    .gguf_naming = {.aliases = kGgufNames,
                    .common = kCommonGgufNames,
                    .rope_layout = RopeLayout::kInterleaved},
};

}  // namespace hexllm::models

// Granite 3.x: Llama with four multipliers.
#include "models/families.h"
#include "models/gguf_config.h"
#include "models/hf_config.h"

namespace hexllm::models {
namespace {

Result<DecoderConfig> FromHf(const Json& json) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config, ReadCommonHfConfig(json));
  HX_RETURN_IF_ERROR(ReadAttentionBias(json, config));
  HX_ASSIGN_OR_RETURN(config.mlp_bias, ReadBias(json, "mlp_bias"));
  HX_ASSIGN_OR_RETURN(config.embedding_scale,
                      ReadFactor(json, "embedding_multiplier", 1));
  HX_ASSIGN_OR_RETURN(config.residual_scale,
                      ReadFactor(json, "residual_multiplier", 1));
  HX_ASSIGN_OR_RETURN(config.attention_scale,
                      ReadFactor(json, "attention_multiplier", 1));
  HX_ASSIGN_OR_RETURN(const double divisor,
                      ReadFactor(json, "logits_scaling", 1));
  config.logits_scale = 1 / divisor;
  return config;
}

// llama.cpp takes a scale of 0 for one that is not there.
Result<DecoderConfig> FromGguf(const Checkpoint& checkpoint,
                               std::string_view architecture) {
  constexpr std::string_view kOwn[] = {"embedding_scale", "residual_scale",
                                       "attention.scale", "logit_scale"};
  HX_ASSIGN_OR_RETURN(DecoderConfig config,
                      ReadCommonGgufConfig(checkpoint, architecture, kOwn));
  const GgufKeys keys(*checkpoint.gguf(), architecture);
  HX_ASSIGN_OR_RETURN(config.embedding_scale,
                      keys.FactorOr("embedding_scale", 1));
  HX_ASSIGN_OR_RETURN(config.residual_scale,
                      keys.FactorOr("residual_scale", 1));
  HX_ASSIGN_OR_RETURN(config.attention_scale,
                      keys.FactorOr("attention.scale", config.attention_scale));
  HX_ASSIGN_OR_RETURN(const double divisor, keys.FactorOr("logit_scale", 1));
  config.logits_scale = 1 / divisor;
  return config;
}

constexpr std::string_view kHfArchitectures[] = {"GraniteForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"granite"};
constexpr std::string_view kDecoderModels[] = {"granite",
                                               "granite_3_3-2b_instruct"};

}  // namespace

const ModelSpec kGranite = {
    .name = "granite",
    .hf_architectures = kHfArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .decoder_models = kDecoderModels,
    .from_hf = FromHf,
    .from_gguf = FromGguf,
    .gguf_naming = {.common = kCommonGgufNames,
                    .rope_layout = RopeLayout::kInterleaved},
};

}  // namespace hexllm::models

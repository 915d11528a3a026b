// Gemma: Llama with (1 + w) norms, scaled embeddings and a GELU.
#include "models/families.h"
#include "models/gemma_config.h"
#include "models/gguf_config.h"
#include "models/hf_config.h"

namespace hexllm::models {
namespace {

Result<DecoderConfig> FromHf(const Json& json) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config, ReadGemmaConfig(json));
  HX_ASSIGN_OR_RETURN(RopeConfig rope, ReadHfRope(json, config.head_dim));
  SetUniformLayers(config, std::move(rope));
  return config;
}

Result<DecoderConfig> FromGguf(const Checkpoint& checkpoint,
                               std::string_view architecture) {
  return ReadGemmaGguf(checkpoint, architecture, {});
}

constexpr std::string_view kHfArchitectures[] = {"GemmaForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"gemma"};
constexpr std::string_view kDecoderModels[] = {"gemma", "gemma-2b"};

}  // namespace

const ModelSpec kGemma = {
    .name = "gemma",
    .hf_architectures = kHfArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .decoder_models = kDecoderModels,
    .from_hf = FromHf,
    .from_gguf = FromGguf,
    .gguf_naming = {.common = kCommonGgufNames},
};

}  // namespace hexllm::models

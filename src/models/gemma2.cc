// Gemma 2: Gemma with softcaps, a second norm behind each part, and a window in
// every other layer, from the first on.
#include "models/families.h"
#include "models/gemma_config.h"
#include "models/gguf_config.h"
#include "models/hf_config.h"

namespace hexllm::models {
namespace {

bool SlidesByDefault(int64_t layer) { return layer % 2 == 0; }

Result<DecoderConfig> FromHf(const Json& json) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config, ReadGemmaConfig(json));
  HX_ASSIGN_OR_RETURN(RopeConfig rope, ReadHfRope(json, config.head_dim));
  SetUniformLayers(config, std::move(rope));
  HX_RETURN_IF_ERROR(ReadGemma2Keys(json, config));
  HX_ASSIGN_OR_RETURN(const std::vector<bool> sliding,
                      ReadSlidingLayers(json, config.layers, SlidesByDefault));
  HX_ASSIGN_OR_RETURN(const int64_t tokens, ReadGemmaWindow(json));
  HX_RETURN_IF_ERROR(SetWindows(config, sliding, "sliding_window", tokens));
  return config;
}

Result<DecoderConfig> FromGguf(const Checkpoint& checkpoint,
                               std::string_view architecture) {
  constexpr std::string_view kOwn[] = {"attention.sliding_window"};
  HX_ASSIGN_OR_RETURN(DecoderConfig config,
                      ReadGemmaGguf(checkpoint, architecture, kOwn));
  config.norm_placement = NormPlacement::kBeforeAndAfter;
  const GgufKeys keys(*checkpoint.gguf(), architecture);
  HX_ASSIGN_OR_RETURN(config.attention_softcap,
                      keys.FactorOr("attn_logit_softcapping", 50));
  HX_ASSIGN_OR_RETURN(config.logits_softcap,
                      keys.FactorOr("final_logit_softcapping", 30));
  SetGgufScoreScale(config, 46);
  HX_ASSIGN_OR_RETURN(const int64_t tokens,
                      keys.IntOr("attention.sliding_window", 4096));
  HX_RETURN_IF_ERROR(SetWindows(config,
                                MarkLayers(config.layers, SlidesByDefault),
                                "attention.sliding_window", tokens));
  return config;
}

constexpr std::string_view kHfArchitectures[] = {"Gemma2ForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"gemma2"};
constexpr std::string_view kDecoderModels[] = {"gemma2", "gemma2-2b"};

}  // namespace

const ModelSpec kGemma2 = {
    .name = "gemma2",
    .hf_architectures = kHfArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .decoder_models = kDecoderModels,
    .from_hf = FromHf,
    .from_gguf = FromGguf,
    .gguf_naming = {.aliases = kGemma2GgufNames, .common = kCommonGgufNames},
};

}  // namespace hexllm::models

// Gemma 3 (text): Gemma 2 with norms on query and key heads in place of
// softcaps; five layers with a window and a RoPE base of their own for each one
// without.
#include <fmt/format.h>

#include "models/families.h"
#include "models/gemma_config.h"
#include "models/gguf_config.h"
#include "models/hf_config.h"

namespace hexllm::models {
namespace {

constexpr double kGlobalTheta = 1000000;
constexpr double kLocalTheta = 10000;
constexpr int64_t kDefaultPattern = 6;

// Rows of DecoderConfig::ropes.
constexpr size_t kGlobal = 0;
constexpr size_t kLocal = 1;

// transformers 5: rope_parameters has one set per kind of layer; before:
// rope_theta and rope_scaling, and rope_local_base_freq for the others.
Result<std::vector<RopeConfig>> ReadRopes(const Json& json, int64_t head_dim) {
  Json global = json;
  Json local = {{"rope_theta", kLocalTheta}};
  const Json* sets = FindMember(json, "rope_parameters");
  if (sets != nullptr) {
    for (const auto& [kind, target] :
         {std::pair{"full_attention", &global},
          std::pair{"sliding_attention", &local}}) {
      const Json* set = FindMember(*sets, kind);
      if (set == nullptr) {
        return Error{ErrorCode::kBadInput,
                     fmt::format("'rope_parameters': expected a set for {}, "
                                 "found none",
                                 kind)};
      }
      (*target)["rope_parameters"] = *set;
    }
  } else {
    HX_ASSIGN_OR_RETURN(local["rope_theta"],
                        GetNumberOr(json, "rope_local_base_freq", kLocalTheta));
  }
  std::vector<RopeConfig> ropes(2);
  HX_ASSIGN_OR_RETURN(ropes[kGlobal],
                      ReadHfRope(global, head_dim, {.theta = kGlobalTheta}));
  HX_ASSIGN_OR_RETURN(ropes[kLocal],
                      ReadHfRope(local, head_dim, {.theta = kLocalTheta}));
  return ropes;
}

// layer_types make it void.
Result<int64_t> ReadPattern(const Json& json) {
  constexpr const char* kKey = "sliding_window_pattern";
  if (FindMember(json, "layer_types") != nullptr) return kDefaultPattern;
  HX_ASSIGN_OR_RETURN(const int64_t pattern,
                      GetIntOr(json, kKey, kDefaultPattern));
  if (pattern >= 1) return pattern;
  return Error{
      ErrorCode::kBadInput,
      fmt::format("'{}': expected at least 1, found {}", kKey, pattern)};
}

// The last of each group of `pattern` layers sees all tokens.
LayerRule SlidesIn(int64_t pattern) {
  return [pattern](int64_t layer) { return (layer + 1) % pattern != 0; };
}

Status SetKinds(DecoderConfig& config, const std::vector<bool>& sliding,
                const char* key, int64_t tokens) {
  HX_RETURN_IF_ERROR(SetWindows(config, sliding, key, tokens));
  for (size_t l = 0; l < sliding.size(); ++l)
    config.layer_configs[l].rope = sliding[l] ? kLocal : kGlobal;
  return OkStatus();
}

Result<DecoderConfig> FromHf(const Json& json) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config, ReadGemmaConfig(json));
  config.qk_norm = QkNorm::kPerHead;
  HX_ASSIGN_OR_RETURN(std::vector<RopeConfig> ropes,
                      ReadRopes(json, config.head_dim));
  SetUniformLayers(config, ropes[kGlobal]);
  config.ropes = std::move(ropes);
  HX_RETURN_IF_ERROR(ReadGemma2Keys(json, config));
  HX_ASSIGN_OR_RETURN(const int64_t pattern, ReadPattern(json));
  HX_ASSIGN_OR_RETURN(
      const std::vector<bool> sliding,
      ReadSlidingLayers(json, config.layers, SlidesIn(pattern)));
  HX_ASSIGN_OR_RETURN(const int64_t tokens, ReadGemmaWindow(json));
  HX_RETURN_IF_ERROR(SetKinds(config, sliding, "sliding_window", tokens));
  return config;
}

// llama.cpp fixes the pattern and the local base, and scales the global RoPE
// alone.
Result<DecoderConfig> FromGguf(const Checkpoint& checkpoint,
                               std::string_view architecture) {
  constexpr std::string_view kOwn[] = {"attention.sliding_window"};
  HX_ASSIGN_OR_RETURN(DecoderConfig config,
                      ReadGemmaGguf(checkpoint, architecture, kOwn));
  config.norm_placement = NormPlacement::kBeforeAndAfter;
  config.qk_norm = QkNorm::kPerHead;
  SetGgufScoreScale(config, 62);
  config.ropes.push_back(
      {.theta = kLocalTheta, .rotary_dim = config.ropes[kGlobal].rotary_dim});
  const std::vector<bool> sliding =
      MarkLayers(config.layers, SlidesIn(kDefaultPattern));
  const GgufKeys keys(*checkpoint.gguf(), architecture);
  HX_ASSIGN_OR_RETURN(const int64_t tokens,
                      keys.Int("attention.sliding_window"));
  HX_RETURN_IF_ERROR(
      SetKinds(config, sliding, "attention.sliding_window", tokens));
  return config;
}

constexpr std::string_view kHfArchitectures[] = {"Gemma3ForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"gemma3"};
constexpr std::string_view kDecoderModels[] = {"gemma3", "gemma3-1b"};

}  // namespace

const ModelSpec kGemma3 = {
    .name = "gemma3",
    .hf_architectures = kHfArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .decoder_models = kDecoderModels,
    .from_hf = FromHf,
    .from_gguf = FromGguf,
    .gguf_naming = {.aliases = kGemma2GgufNames, .common = kCommonGgufNames},
};

}  // namespace hexllm::models

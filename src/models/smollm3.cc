// SmolLM3: Llama, with layers that have no RoPE (NoPE).
#include <fmt/format.h>

#include "models/families.h"
#include "models/gguf_config.h"
#include "models/hf_config.h"

namespace hexllm::models {
namespace {

// Every n-th layer has none.
constexpr int64_t kDefaultInterval = 4;

void SetInterval(DecoderConfig& config, int64_t interval) {
  for (int64_t l = interval - 1; l < config.layers; l += interval)
    config.layer_configs[static_cast<size_t>(l)].rope = std::nullopt;
}

// no_rope_layers has a 1 for each layer *with* RoPE, else a 0.
Status ReadLayerList(const Json& list, DecoderConfig& config) {
  if (!list.is_array() || list.size() != config.layer_configs.size()) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("'no_rope_layers': expected a list of {} numbers, found {}",
                    config.layers,
                    list.is_array() ? fmt::format("{}", list.size())
                                    : std::string(JsonTypeName(list)))};
  }
  for (size_t l = 0; l < list.size(); ++l) {
    if (list[l] == 1) continue;
    if (list[l] != 0) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("'no_rope_layers': expected 0 or 1, found {}",
                               DumpJson(list[l]))};
    }
    config.layer_configs[l].rope = std::nullopt;
  }
  return OkStatus();
}

Status ReadRopeLayers(const Json& json, DecoderConfig& config) {
  if (const Json* list = FindMember(json, "no_rope_layers"))
    return ReadLayerList(*list, config);
  constexpr const char* kKey = "no_rope_layer_interval";
  HX_ASSIGN_OR_RETURN(const int64_t interval,
                      GetIntOr(json, kKey, kDefaultInterval));
  if (interval < 1) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("'{}': expected at least 1, found {}", kKey, interval)};
  }
  SetInterval(config, interval);
  return OkStatus();
}

// Where windows are used, they are those of the layers without RoPE.
Status ReadWindows(const Json& json, DecoderConfig& config) {
  HX_ASSIGN_OR_RETURN(const bool used,
                      GetBoolOr(json, "use_sliding_window", false));
  if (!used) return OkStatus();
  HX_ASSIGN_OR_RETURN(const int64_t tokens, GetInt(json, "sliding_window"));
  HX_ASSIGN_OR_RETURN(
      const std::vector<bool> sliding,
      ReadSlidingLayers(json, config.layers, [&](int64_t layer) {
        return !config.layer_configs[static_cast<size_t>(layer)].rope;
      }));
  return SetWindows(config, sliding, "sliding_window", tokens);
}

Result<DecoderConfig> FromHf(const Json& json) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config,
                      ReadCommonHfConfig(json, {.head = Head::kTied,
                                                .rope = {.theta = 2000000.0}}));
  HX_RETURN_IF_ERROR(ReadAttentionBias(json, config));
  HX_ASSIGN_OR_RETURN(config.mlp_bias, ReadBias(json, "mlp_bias"));
  HX_RETURN_IF_ERROR(ReadRopeLayers(json, config));
  HX_RETURN_IF_ERROR(ReadWindows(json, config));
  return config;
}

// llama.cpp fixes the interval.
Result<DecoderConfig> FromGguf(const Checkpoint& checkpoint,
                               std::string_view architecture) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config,
                      ReadCommonGgufConfig(checkpoint, architecture));
  SetInterval(config, kDefaultInterval);
  return config;
}

constexpr std::string_view kHfArchitectures[] = {"SmolLM3ForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"smollm3"};
constexpr std::string_view kDecoderModels[] = {"smollm3", "smollm3-3b"};

}  // namespace

const ModelSpec kSmolLm3 = {
    .name = "smollm3",
    .hf_architectures = kHfArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .decoder_models = kDecoderModels,
    .from_hf = FromHf,
    .from_gguf = FromGguf,
    .gguf_naming = {.common = kCommonGgufNames,
                    .rope_layout = RopeLayout::kInterleaved},
};

}  // namespace hexllm::models

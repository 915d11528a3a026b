#include "models/hf_config.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace hexllm::models {
namespace {

// Far above any published model; keeps every product of two sizes within 64
// bits.
constexpr int64_t kMaxDim = int64_t{1} << 26;
constexpr int64_t kMaxLayers = 4096;
// Far beyond what any model has; within them f32 neither overflows nor
// vanishes.
constexpr double kMinEps = 1e-20;
constexpr double kMaxEps = 1;
constexpr double kMinFactor = 1e-6;
constexpr double kMaxFactor = 1e6;

struct ActivationRow {
  std::string_view name;
  HiddenActivation activation;
};
constexpr ActivationRow kActivations[] = {
    {"silu", HiddenActivation::kSilu},
    {"swish", HiddenActivation::kSilu},
    {"gelu", HiddenActivation::kGeluErf},
    {"gelu_new", HiddenActivation::kGeluTanh},
    {"gelu_pytorch_tanh", HiddenActivation::kGeluTanh},
};

Status CheckRange(std::string_view key, int64_t value, int64_t max) {
  if (value >= 1 && value <= max) return OkStatus();
  return Error{
      ErrorCode::kBadInput,
      fmt::format("'{}': expected 1 to {}, found {}", key, max, value)};
}

Status ReadSizes(const Json& json, const HfDefaults& defaults,
                 DecoderConfig& config) {
  HX_ASSIGN_OR_RETURN(config.vocab, GetInt(json, "vocab_size"));
  HX_ASSIGN_OR_RETURN(config.hidden, GetInt(json, "hidden_size"));
  HX_ASSIGN_OR_RETURN(config.layers, GetInt(json, "num_hidden_layers"));
  HX_ASSIGN_OR_RETURN(config.heads, GetInt(json, "num_attention_heads"));
  HX_RETURN_IF_ERROR(CheckRange("num_attention_heads", config.heads, kMaxDim));
  HX_ASSIGN_OR_RETURN(config.kv_heads,
                      GetIntOr(json, "num_key_value_heads", config.heads));
  const int64_t head_dim =
      defaults.head_dim > 0 ? defaults.head_dim : config.hidden / config.heads;
  HX_ASSIGN_OR_RETURN(config.head_dim, GetIntOr(json, "head_dim", head_dim));
  HX_ASSIGN_OR_RETURN(config.ffn, GetInt(json, "intermediate_size"));
  HX_ASSIGN_OR_RETURN(config.max_positions,
                      GetInt(json, "max_position_embeddings"));
  return OkStatus();
}

// The row of `windows` with this window; a new one when there is none.
size_t WindowRow(DecoderConfig& config, uint32_t window) {
  for (size_t j = 0; j < config.windows.size(); ++j) {
    if (config.windows[j] == window) return j;
  }
  config.windows.push_back(window);
  return config.windows.size() - 1;
}

}  // namespace

Result<HiddenActivation> ParseActivation(std::string_view key,
                                         std::string_view name) {
  std::string known;
  for (const ActivationRow& row : kActivations) {
    if (row.name == name) return row.activation;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("'{}': expected one of {}, found '{}'", key, known, name)};
}

Result<Bias> ReadBias(const Json& json, const char* key) {
  HX_ASSIGN_OR_RETURN(const bool present, GetBoolOr(json, key, false));
  return present ? Bias::kPresent : Bias::kNone;
}

Status ReadAttentionBias(const Json& json, DecoderConfig& config) {
  HX_ASSIGN_OR_RETURN(config.qkv_bias, ReadBias(json, "attention_bias"));
  config.attention_out_bias = config.qkv_bias;
  return OkStatus();
}

Result<double> CheckMultiplier(std::string_view key, double value) {
  if (value >= kMinFactor && value <= kMaxFactor) return value;
  return Error{ErrorCode::kBadInput,
               fmt::format("'{}': expected {} to {}, found {}", key, kMinFactor,
                           kMaxFactor, value)};
}

Result<double> ReadFactor(const Json& json, const char* key, double fallback) {
  HX_ASSIGN_OR_RETURN(const double factor, GetNumberOr(json, key, fallback));
  return CheckMultiplier(key, factor);
}

Result<double> ReadSoftcap(const Json& json, const char* key) {
  if (FindMember(json, key) == nullptr) return 0.0;
  return ReadFactor(json, key, 0);
}

std::vector<bool> MarkLayers(int64_t layers, const LayerRule& rule) {
  std::vector<bool> marks;
  for (int64_t l = 0; l < layers; ++l) marks.push_back(rule(l));
  return marks;
}

Result<std::vector<bool>> ReadSlidingLayers(const Json& json, int64_t layers,
                                            const LayerRule& otherwise) {
  const Json* types = FindMember(json, "layer_types");
  if (types == nullptr) return MarkLayers(layers, otherwise);
  if (!types->is_array() || types->size() != static_cast<size_t>(layers)) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("'layer_types': expected a list of {} names, one per "
                    "layer, found {}",
                    layers,
                    types->is_array() ? fmt::format("{}", types->size())
                                      : std::string(JsonTypeName(*types)))};
  }
  std::vector<bool> sliding;
  for (const Json& type : *types) {
    const bool slides = type == "sliding_attention";
    if (!slides && type != "full_attention") {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("'layer_types': expected full_attention or "
                               "sliding_attention, found {}",
                               DumpJson(type))};
    }
    sliding.push_back(slides);
  }
  return sliding;
}

Status SetWindows(DecoderConfig& config, const std::vector<bool>& sliding,
                  const char* key, int64_t tokens) {
  HX_RETURN_IF_ERROR(CheckRange(key, tokens, INT32_MAX));
  const bool is_short = tokens < config.max_positions;
  config.windows.clear();
  for (size_t l = 0; l < sliding.size(); ++l) {
    const bool bounded = sliding[l] && is_short;
    config.layer_configs[l].window =
        WindowRow(config, bounded ? static_cast<uint32_t>(tokens) : 0);
  }
  return OkStatus();
}

void SetUniformLayers(DecoderConfig& config, RopeConfig rope) {
  config.ropes = {std::move(rope)};
  config.windows = {0};
  config.layer_configs.assign(static_cast<size_t>(config.layers),
                              LayerConfig{});
  config.attention_scale =
      1.0 / std::sqrt(static_cast<double>(config.head_dim));
}

Result<DecoderConfig> ReadHfSizes(const Json& json,
                                  const HfDefaults& defaults) {
  if (FindMember(json, "quantization_config") != nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "'quantization_config': expected float weights, found "
                 "quantized ones; take the model as it was before"};
  }
  DecoderConfig config;
  HX_RETURN_IF_ERROR(ReadSizes(json, defaults, config));
  HX_ASSIGN_OR_RETURN(config.norm_eps, GetNumber(json, "rms_norm_eps"));
  HX_ASSIGN_OR_RETURN(const bool tied, GetBoolOr(json, "tie_word_embeddings",
                                                 defaults.head == Head::kTied));
  config.head = tied ? Head::kTied : Head::kUntied;
  HX_RETURN_IF_ERROR(ValidateConfig(config));
  return config;
}

Result<DecoderConfig> ReadCommonHfConfig(const Json& json,
                                         const HfDefaults& defaults) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config, ReadHfSizes(json, defaults));
  HX_ASSIGN_OR_RETURN(const std::string activation,
                      GetString(json, "hidden_act"));
  HX_ASSIGN_OR_RETURN(config.activation,
                      ParseActivation("hidden_act", activation));
  HX_ASSIGN_OR_RETURN(RopeConfig rope,
                      ReadHfRope(json, config.head_dim, defaults.rope));
  SetUniformLayers(config, std::move(rope));
  return config;
}

Status ValidateConfig(const DecoderConfig& config, const SizeKeys& keys) {
  HX_RETURN_IF_ERROR(CheckRange(keys.vocab, config.vocab, kMaxDim));
  HX_RETURN_IF_ERROR(CheckRange(keys.hidden, config.hidden, kMaxDim));
  HX_RETURN_IF_ERROR(CheckRange(keys.layers, config.layers, kMaxLayers));
  HX_RETURN_IF_ERROR(CheckRange(keys.heads, config.heads, kMaxDim));
  HX_RETURN_IF_ERROR(CheckRange(keys.kv_heads, config.kv_heads, config.heads));
  HX_RETURN_IF_ERROR(CheckRange(keys.head_dim, config.head_dim, kMaxDim));
  HX_RETURN_IF_ERROR(CheckRange(keys.ffn, config.ffn, kMaxDim));
  HX_RETURN_IF_ERROR(
      CheckRange(keys.max_positions, config.max_positions, kMaxDim));
  if (config.heads % config.kv_heads != 0) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("'{}': expected a multiple of {} {}, found {}", keys.heads,
                    keys.kv_heads, config.kv_heads, config.heads)};
  }
  if (!(config.norm_eps >= kMinEps && config.norm_eps <= kMaxEps)) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("norm epsilon: expected {} to {}, found {}",
                             kMinEps, kMaxEps, config.norm_eps)};
  }
  return OkStatus();
}

}  // namespace hexllm::models

#include "models/hf_config.h"

#include <fmt/format.h>

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
constexpr double kMinTheta = 1;
constexpr double kMaxTheta = 1e15;
constexpr double kMinFactor = 1e-3;
constexpr double kMaxFactor = 1e6;

Result<HiddenActivation> ParseActivation(const std::string& name) {
  if (name == "silu" || name == "swish") return HiddenActivation::kSilu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new")
    return HiddenActivation::kGeluTanh;
  if (name == "gelu") return HiddenActivation::kGeluErf;
  return Error{
      ErrorCode::kUnsupported,
      fmt::format(
          "'hidden_act': expected silu, gelu or gelu_pytorch_tanh, found '{}'",
          name)};
}

Status CheckRange(std::string_view key, int64_t value, int64_t max) {
  if (value >= 1 && value <= max) return OkStatus();
  return Error{
      ErrorCode::kBadInput,
      fmt::format("'{}': expected 1 to {}, found {}", key, max, value)};
}

Result<RopeScaling> ParseRopeType(const std::string& type) {
  if (type == "default") return RopeScaling::kDefault;
  if (type == "linear") return RopeScaling::kLinear;
  if (type == "llama3") return RopeScaling::kLlama3;
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("'rope_type': expected default, linear or llama3, found '{}'",
                  type)};
}

// `scaling` is rope_scaling or rope_parameters; both carry the same keys for a
// given type.
Status ReadScaling(const Json& scaling, RopeConfig& rope) {
  if (!scaling.is_object()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("RoPE scaling: expected an object, found {}",
                             JsonTypeName(scaling))};
  }
  const char* key =
      FindMember(scaling, "rope_type") != nullptr ? "rope_type" : "type";
  const bool scaled = FindMember(scaling, "factor") != nullptr;
  // A factor without a type would be ignored: nobody means that.
  HX_ASSIGN_OR_RETURN(
      const std::string type,
      scaled ? GetString(scaling, key) : GetStringOr(scaling, key, "default"));
  HX_ASSIGN_OR_RETURN(rope.scaling, ParseRopeType(type));
  if (rope.scaling == RopeScaling::kDefault) return OkStatus();
  HX_ASSIGN_OR_RETURN(rope.factor, GetNumber(scaling, "factor"));
  if (rope.scaling == RopeScaling::kLinear) return OkStatus();
  HX_ASSIGN_OR_RETURN(rope.low_freq_factor,
                      GetNumber(scaling, "low_freq_factor"));
  HX_ASSIGN_OR_RETURN(rope.high_freq_factor,
                      GetNumber(scaling, "high_freq_factor"));
  HX_ASSIGN_OR_RETURN(rope.original_positions,
                      GetInt(scaling, "original_max_position_embeddings"));
  if (!(rope.low_freq_factor > 0 &&
        rope.high_freq_factor > rope.low_freq_factor)) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("llama3 rope scaling: expected 0 < low_freq_factor < "
                    "high_freq_factor, found {} and {}",
                    rope.low_freq_factor, rope.high_freq_factor)};
  }
  return CheckRange("original_max_position_embeddings", rope.original_positions,
                    kMaxDim);
}

Status ReadSizes(const Json& json, DecoderConfig& config) {
  HX_ASSIGN_OR_RETURN(config.vocab, GetInt(json, "vocab_size"));
  HX_ASSIGN_OR_RETURN(config.hidden, GetInt(json, "hidden_size"));
  HX_ASSIGN_OR_RETURN(config.layers, GetInt(json, "num_hidden_layers"));
  HX_ASSIGN_OR_RETURN(config.heads, GetInt(json, "num_attention_heads"));
  HX_RETURN_IF_ERROR(CheckRange("num_attention_heads", config.heads, kMaxDim));
  HX_ASSIGN_OR_RETURN(config.kv_heads,
                      GetIntOr(json, "num_key_value_heads", config.heads));
  HX_ASSIGN_OR_RETURN(config.head_dim,
                      GetIntOr(json, "head_dim", config.hidden / config.heads));
  HX_ASSIGN_OR_RETURN(config.ffn, GetInt(json, "intermediate_size"));
  HX_ASSIGN_OR_RETURN(config.max_positions,
                      GetInt(json, "max_position_embeddings"));
  return OkStatus();
}

}  // namespace

Result<RopeConfig> ReadHfRope(const Json& json, int64_t head_dim) {
  const Json* parameters = FindMember(json, "rope_parameters");
  RopeConfig rope;
  HX_ASSIGN_OR_RETURN(const double fallback_theta,
                      GetNumberOr(json, "rope_theta", 10000.0));
  HX_ASSIGN_OR_RETURN(
      rope.theta, parameters != nullptr
                      ? GetNumberOr(*parameters, "rope_theta", fallback_theta)
                      : Result<double>(fallback_theta));
  const Json& partial_owner =
      parameters != nullptr &&
              FindMember(*parameters, "partial_rotary_factor") != nullptr
          ? *parameters
          : json;
  HX_ASSIGN_OR_RETURN(const double partial,
                      GetNumberOr(partial_owner, "partial_rotary_factor", 1.0));
  if (!(partial > 0 && partial <= 1)) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("'partial_rotary_factor': expected a number above "
                             "0 and up to 1, found {}",
                             partial)};
  }
  rope.rotary_dim =
      static_cast<int64_t>(static_cast<double>(head_dim) * partial);
  if (rope.rotary_dim % 2 != 0 || rope.rotary_dim == 0) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("rotary dimension: expected a positive even "
                             "number up to head_dim {}, found {}",
                             head_dim, rope.rotary_dim)};
  }
  const Json* scaling =
      parameters != nullptr ? parameters : FindMember(json, "rope_scaling");
  if (scaling != nullptr) HX_RETURN_IF_ERROR(ReadScaling(*scaling, rope));
  HX_RETURN_IF_ERROR(ValidateRope(rope));
  return rope;
}

Status ValidateRope(const RopeConfig& rope) {
  if (!(rope.theta >= kMinTheta && rope.theta <= kMaxTheta)) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("RoPE base (rope_theta): expected {} to {}, found {}",
                    kMinTheta, kMaxTheta, rope.theta)};
  }
  if (!(rope.factor >= kMinFactor && rope.factor <= kMaxFactor)) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("RoPE scaling factor: expected {} to {}, found {}",
                             kMinFactor, kMaxFactor, rope.factor)};
  }
  return OkStatus();
}

Result<DecoderConfig> ReadCommonHfConfig(const Json& json) {
  if (FindMember(json, "quantization_config") != nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "'quantization_config': expected float weights, found "
                 "quantized ones; take the model as it was before"};
  }
  DecoderConfig config;
  HX_RETURN_IF_ERROR(ReadSizes(json, config));
  HX_ASSIGN_OR_RETURN(config.norm_eps, GetNumber(json, "rms_norm_eps"));
  HX_ASSIGN_OR_RETURN(const std::string activation,
                      GetString(json, "hidden_act"));
  HX_ASSIGN_OR_RETURN(config.activation, ParseActivation(activation));
  HX_ASSIGN_OR_RETURN(const bool tied,
                      GetBoolOr(json, "tie_word_embeddings", false));
  config.head = tied ? Head::kTied : Head::kUntied;
  HX_RETURN_IF_ERROR(ValidateConfig(config));
  HX_ASSIGN_OR_RETURN(config.rope, ReadHfRope(json, config.head_dim));
  return config;
}

Status ValidateConfig(const DecoderConfig& config) {
  HX_RETURN_IF_ERROR(CheckRange("vocab_size", config.vocab, kMaxDim));
  HX_RETURN_IF_ERROR(CheckRange("hidden_size", config.hidden, kMaxDim));
  HX_RETURN_IF_ERROR(
      CheckRange("num_hidden_layers", config.layers, kMaxLayers));
  HX_RETURN_IF_ERROR(CheckRange("num_attention_heads", config.heads, kMaxDim));
  HX_RETURN_IF_ERROR(
      CheckRange("num_key_value_heads", config.kv_heads, config.heads));
  HX_RETURN_IF_ERROR(CheckRange("head_dim", config.head_dim, kMaxDim));
  HX_RETURN_IF_ERROR(CheckRange("intermediate_size", config.ffn, kMaxDim));
  HX_RETURN_IF_ERROR(
      CheckRange("max_position_embeddings", config.max_positions, kMaxDim));
  if (config.heads % config.kv_heads != 0) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("'num_attention_heads': expected a multiple of "
                             "num_key_value_heads {}, found {}",
                             config.kv_heads, config.heads)};
  }
  if (!(config.norm_eps >= kMinEps && config.norm_eps <= kMaxEps)) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("'rms_norm_eps': expected {} to {}, found {}",
                             kMinEps, kMaxEps, config.norm_eps)};
  }
  return OkStatus();
}

}  // namespace hexllm::models

#include "models/hf_rope.h"

#include <fmt/format.h>

#include <cmath>

namespace hexllm::models {
namespace {

// Far beyond what any model has; within them f32 neither overflows nor
// vanishes.
constexpr double kMinTheta = 1;
constexpr double kMaxTheta = 1e15;
constexpr double kMinFactor = 1e-3;
constexpr double kMaxFactor = 1e6;
constexpr int64_t kMaxPositions = int64_t{1} << 26;

Status CheckFactor(const char* what, double factor) {
  if (factor >= kMinFactor && factor <= kMaxFactor) return OkStatus();
  return Error{ErrorCode::kBadInput,
               fmt::format("{}: expected {} to {}, found {}", what, kMinFactor,
                           kMaxFactor, factor)};
}

// `json` is the whole configuration, `scaling` its rope_scaling or
// rope_parameters: longrope has keys in both.
struct ScalingKeys {
  const Json& json;
  const Json& scaling;
};

const Json& OwnerOf(const ScalingKeys& keys, const char* key) {
  return FindMember(keys.scaling, key) != nullptr ? keys.scaling : keys.json;
}

Status ReadOriginalPositions(const ScalingKeys& keys, RopeConfig& rope) {
  constexpr const char* kKey = "original_max_position_embeddings";
  HX_ASSIGN_OR_RETURN(rope.original_positions,
                      GetInt(OwnerOf(keys, kKey), kKey));
  if (rope.original_positions >= 1 && rope.original_positions <= kMaxPositions)
    return OkStatus();
  return Error{ErrorCode::kBadInput,
               fmt::format("'{}': expected 1 to {}, found {}", kKey,
                           kMaxPositions, rope.original_positions)};
}

Status ReadLinear(const ScalingKeys& keys, RopeConfig& rope) {
  rope.scaling = RopeScaling::kLinear;
  HX_ASSIGN_OR_RETURN(rope.factor, GetNumber(keys.scaling, "factor"));
  return OkStatus();
}

Status ReadLlama3(const ScalingKeys& keys, RopeConfig& rope) {
  rope.scaling = RopeScaling::kLlama3;
  HX_ASSIGN_OR_RETURN(rope.factor, GetNumber(keys.scaling, "factor"));
  HX_ASSIGN_OR_RETURN(rope.low_freq_factor,
                      GetNumber(keys.scaling, "low_freq_factor"));
  HX_ASSIGN_OR_RETURN(rope.high_freq_factor,
                      GetNumber(keys.scaling, "high_freq_factor"));
  if (!(rope.low_freq_factor > 0 &&
        rope.high_freq_factor > rope.low_freq_factor)) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("llama3 rope scaling: expected 0 < low_freq_factor < "
                    "high_freq_factor, found {} and {}",
                    rope.low_freq_factor, rope.high_freq_factor)};
  }
  return ReadOriginalPositions(keys, rope);
}

// One factor per frequency.
Result<std::vector<float>> ReadDivisors(const Json& scaling, const char* key,
                                        int64_t count) {
  const Json* list = FindMember(scaling, key);
  if (list == nullptr || !list->is_array() ||
      list->size() != static_cast<size_t>(count)) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("'{}': expected a list of {} numbers, half the rotary "
                    "dimension, found {}",
                    key, count,
                    list == nullptr    ? "nothing"
                    : list->is_array() ? fmt::format("{}", list->size())
                                       : std::string(JsonTypeName(*list)))};
  }
  std::vector<float> divisors;
  for (const Json& entry : *list) {
    const double factor = entry.is_number() ? entry.get<double>() : 0;
    HX_RETURN_IF_ERROR(CheckFactor(key, factor));
    divisors.push_back(static_cast<float>(factor));
  }
  return divisors;
}

Status ReadLongRope(const ScalingKeys& keys, RopeConfig& rope) {
  HX_RETURN_IF_ERROR(ReadOriginalPositions(keys, rope));
  const int64_t count = rope.rotary_dim / 2;
  HX_ASSIGN_OR_RETURN(rope.freq_divisors,
                      ReadDivisors(keys.scaling, "short_factor", count));
  HX_ASSIGN_OR_RETURN(rope.long_divisors,
                      ReadDivisors(keys.scaling, "long_factor", count));
  HX_ASSIGN_OR_RETURN(const int64_t longest,
                      GetInt(keys.json, "max_position_embeddings"));
  const double stretch = static_cast<double>(longest) /
                         static_cast<double>(rope.original_positions);
  HX_ASSIGN_OR_RETURN(const double factor,
                      GetNumberOr(keys.scaling, "factor", stretch));
  HX_ASSIGN_OR_RETURN(
      rope.attention_factor,
      GetNumberOr(keys.scaling, "attention_factor",
                  LongRopeAttentionFactor(factor, rope.original_positions)));
  return OkStatus();
}

Status ReadNothing(const ScalingKeys&, RopeConfig&) { return OkStatus(); }

struct RopeTypeRow {
  std::string_view type;
  Status (*read)(const ScalingKeys& keys, RopeConfig& rope);
};
constexpr RopeTypeRow kRopeTypes[] = {
    {"default", ReadNothing},
    // Changes nothing up to max_position_embeddings, the longest context.
    {"dynamic", ReadNothing},
    {"linear", ReadLinear},
    {"llama3", ReadLlama3},
    {"longrope", ReadLongRope},
    {"su", ReadLongRope},  // what the first Phi-3 files call it
};

Status ReadScaling(const ScalingKeys& keys, RopeConfig& rope) {
  const Json& scaling = keys.scaling;
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
  std::string known;
  for (const RopeTypeRow& row : kRopeTypes) {
    if (row.type == type) return row.read(keys, rope);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.type);
  }
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("'rope_type': expected one of {}, found '{}'", known, type)};
}

// rope_parameters of one set; null when there are none.
Result<const Json*> FindParameters(const Json& json) {
  const Json* parameters = FindMember(json, "rope_parameters");
  if (parameters == nullptr || !parameters->is_object()) return parameters;
  for (const auto& [key, value] : parameters->items()) {
    if (!value.is_object()) continue;
    return Error{ErrorCode::kUnsupported,
                 fmt::format("'rope_parameters': expected one set for all "
                             "layers, found one for '{}'",
                             key)};
  }
  return parameters;
}

// Of `head_dim`, times partial_rotary_factor.
Result<int64_t> ReadRotaryDim(const Json& owner, int64_t head_dim,
                              double fallback) {
  HX_ASSIGN_OR_RETURN(const double partial,
                      GetNumberOr(owner, "partial_rotary_factor", fallback));
  if (!(partial > 0 && partial <= 1)) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("'partial_rotary_factor': expected a number above "
                             "0 and up to 1, found {}",
                             partial)};
  }
  const auto rotary_dim =
      static_cast<int64_t>(static_cast<double>(head_dim) * partial);
  if (rotary_dim % 2 != 0 || rotary_dim == 0) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("rotary dimension: expected a positive even "
                             "number up to head_dim {}, found {}",
                             head_dim, rotary_dim)};
  }
  return rotary_dim;
}

}  // namespace

double LongRopeAttentionFactor(double factor, int64_t original) {
  if (factor <= 1 || original <= 1) return 1;
  return std::sqrt(1 +
                   std::log(factor) / std::log(static_cast<double>(original)));
}

Result<RopeConfig> ReadHfRope(const Json& json, int64_t head_dim,
                              const HfRopeDefaults& defaults) {
  HX_ASSIGN_OR_RETURN(const Json* parameters, FindParameters(json));
  RopeConfig rope;
  const Json* scaling =
      parameters != nullptr ? parameters : FindMember(json, "rope_scaling");
  // rope_parameters, where a key can be in both.
  const ScalingKeys keys{json, parameters != nullptr ? *parameters : json};
  HX_ASSIGN_OR_RETURN(rope.theta, GetNumberOr(OwnerOf(keys, "rope_theta"),
                                              "rope_theta", defaults.theta));
  HX_ASSIGN_OR_RETURN(rope.rotary_dim,
                      ReadRotaryDim(OwnerOf(keys, "partial_rotary_factor"),
                                    head_dim, defaults.partial_rotary_factor));
  if (scaling != nullptr)
    HX_RETURN_IF_ERROR(ReadScaling({json, *scaling}, rope));
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
  HX_RETURN_IF_ERROR(CheckFactor("RoPE scaling factor", rope.factor));
  return CheckFactor("RoPE attention factor", rope.attention_factor);
}

}  // namespace hexllm::models

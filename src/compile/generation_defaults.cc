#include "compile/generation_defaults.h"

#include <fmt/format.h>

#include <algorithm>

namespace hexllm {
namespace {

using artifact::GenerationDefaults;

Error BadId(std::string_view key, int64_t id) {
  return Error{ErrorCode::kBadInput,
               fmt::format("'{}': expected a token id, found {}", key, id)};
}

Result<int32_t> CheckedId(std::string_view key, int64_t id) {
  if (id < 0 || id > INT32_MAX) return BadId(key, id);
  return static_cast<int32_t>(id);
}

void AddEndId(GenerationDefaults& out, int32_t id) {
  if (std::find(out.end_ids.begin(), out.end_ids.end(), id) ==
      out.end_ids.end())
    out.end_ids.push_back(id);
}

// eos_token_id is a number or a list of numbers.
Status ReadEndIds(const Json& json, GenerationDefaults& out) {
  const Json* value = FindMember(json, "eos_token_id");
  if (value == nullptr) return OkStatus();
  const Json wrapped = value->is_array() ? *value : Json::array({*value});
  for (const Json& entry : wrapped) {
    if (!entry.is_number_integer())
      return Error{ErrorCode::kBadInput,
                   fmt::format("'eos_token_id': expected token ids, found {}",
                               JsonTypeName(entry))};
    HX_ASSIGN_OR_RETURN(const int32_t id,
                        CheckedId("eos_token_id", entry.get<int64_t>()));
    AddEndId(out, id);
  }
  return OkStatus();
}

// A sampling value and what it may be.
struct Range {
  std::string_view key;
  double min;
  double max;
};

Result<std::optional<float>> InRange(const Range& range,
                                     std::optional<double> value) {
  if (!value) return std::optional<float>();
  if (*value < range.min || *value > range.max) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("'{}': expected {} to {}, found {}", range.key,
                             range.min, range.max, *value)};
  }
  return std::optional<float>(static_cast<float>(*value));
}

constexpr Range kTemperature = {"temperature", 0, 100};
constexpr Range kTopP = {"top_p", 0, 1};
constexpr Range kMinP = {"min_p", 0, 1};
constexpr Range kPenalty = {"repetition_penalty", 0.01, 100};

Result<std::optional<float>> HfNumber(const Json& json, const Range& range) {
  if (FindMember(json, range.key) == nullptr) return std::optional<float>();
  HX_ASSIGN_OR_RETURN(const double value, GetNumber(json, range.key));
  return InRange(range, value);
}

Status ReadHfSampling(const Json& json, GenerationDefaults& out) {
  HX_ASSIGN_OR_RETURN(out.temperature, HfNumber(json, kTemperature));
  HX_ASSIGN_OR_RETURN(out.top_p, HfNumber(json, kTopP));
  HX_ASSIGN_OR_RETURN(out.min_p, HfNumber(json, kMinP));
  HX_ASSIGN_OR_RETURN(out.repetition_penalty, HfNumber(json, kPenalty));
  if (FindMember(json, "top_k") != nullptr) {
    HX_ASSIGN_OR_RETURN(const int64_t top_k, GetInt(json, "top_k"));
    if (top_k < 0 || top_k > INT32_MAX) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("'top_k': expected 0 and more, found {}", top_k)};
    }
    out.top_k = static_cast<int32_t>(top_k);
  }
  HX_ASSIGN_OR_RETURN(const bool do_sample, GetBoolOr(json, "do_sample", true));
  if (!do_sample) out.temperature = 0.0f;
  return OkStatus();
}

Result<std::optional<float>> GgufNumber(const GgufMetadata& metadata,
                                        std::string_view suffix,
                                        const Range& range) {
  HX_ASSIGN_OR_RETURN(
      const std::optional<double> value,
      metadata.FindFloat(fmt::format("general.sampling.{}", suffix)));
  return InRange(range, value);
}

}  // namespace

Result<GenerationDefaults> GenerationFromHf(const Json* generation_config,
                                            const Json* config) {
  GenerationDefaults out;
  const Json* json = generation_config != nullptr ? generation_config : config;
  if (json == nullptr) return out;
  HX_RETURN_IF_ERROR(ReadEndIds(*json, out));
  if (out.end_ids.empty() && config != nullptr)
    HX_RETURN_IF_ERROR(ReadEndIds(*config, out));
  if (FindMember(*json, "bos_token_id") != nullptr) {
    HX_ASSIGN_OR_RETURN(const int64_t bos, GetInt(*json, "bos_token_id"));
    HX_ASSIGN_OR_RETURN(out.bos_id, CheckedId("bos_token_id", bos));
  }
  if (generation_config != nullptr)
    HX_RETURN_IF_ERROR(ReadHfSampling(*generation_config, out));
  return out;
}

Result<GenerationDefaults> GenerationFromGguf(const GgufMetadata& metadata) {
  GenerationDefaults out;
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id"}) {
    HX_ASSIGN_OR_RETURN(const auto id, metadata.FindUint(key));
    if (!id) continue;
    if (*id > INT32_MAX)
      return Error{
          ErrorCode::kBadInput,
          fmt::format("'{}': expected a token id, found {}", key, *id)};
    AddEndId(out, static_cast<int32_t>(*id));
  }
  HX_ASSIGN_OR_RETURN(const auto bos,
                      metadata.FindUint("tokenizer.ggml.bos_token_id"));
  if (bos && *bos <= INT32_MAX) out.bos_id = static_cast<int32_t>(*bos);
  HX_ASSIGN_OR_RETURN(out.temperature,
                      GgufNumber(metadata, "temp", kTemperature));
  HX_ASSIGN_OR_RETURN(out.top_p, GgufNumber(metadata, "top_p", kTopP));
  HX_ASSIGN_OR_RETURN(out.min_p, GgufNumber(metadata, "min_p", kMinP));
  HX_ASSIGN_OR_RETURN(out.repetition_penalty,
                      GgufNumber(metadata, "penalty_repeat", kPenalty));
  HX_ASSIGN_OR_RETURN(const auto top_k,
                      metadata.FindUint("general.sampling.top_k"));
  if (top_k)
    out.top_k = static_cast<int32_t>(std::min<uint64_t>(*top_k, INT32_MAX));
  return out;
}

}  // namespace hexllm

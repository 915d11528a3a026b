#include "models/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/hf_config.h"

namespace hexllm::models {
namespace {

// Keys that change what a llama-like model computes, and that not every family
// has.
constexpr std::string_view kSpecialKeys[] = {
    "expert_count", "attention.sliding_window", "attention.scale",
    "logit_scale",  "residual_scale",           "embedding_scale"};

constexpr std::string_view kRopeFreqs = "rope_freqs.weight";
constexpr std::string_view kShortFactors = "rope_factors_short.weight";
constexpr std::string_view kLongFactors = "rope_factors_long.weight";

Status ReadSizes(const GgufKeys& keys, DecoderConfig& config) {
  HX_ASSIGN_OR_RETURN(config.hidden, keys.Int("embedding_length"));
  HX_ASSIGN_OR_RETURN(config.layers, keys.Int("block_count"));
  HX_ASSIGN_OR_RETURN(config.ffn, keys.Int("feed_forward_length"));
  HX_ASSIGN_OR_RETURN(config.max_positions, keys.Int("context_length"));
  HX_ASSIGN_OR_RETURN(config.heads, keys.Int("attention.head_count"));
  if (config.heads < 1)
    return Error{ErrorCode::kBadInput,
                 fmt::format("'{}': expected at least 1, found {}",
                             keys.Name("attention.head_count"), config.heads)};
  HX_ASSIGN_OR_RETURN(config.kv_heads,
                      keys.IntOr("attention.head_count_kv", config.heads));
  HX_ASSIGN_OR_RETURN(
      config.head_dim,
      keys.IntOr("attention.key_length", config.hidden / config.heads));
  return OkStatus();
}

// ValidateConfig with the keys of the file.
Status CheckSizes(const GgufKeys& keys, const DecoderConfig& config) {
  const std::string hidden = keys.Name("embedding_length");
  const std::string layers = keys.Name("block_count");
  const std::string heads = keys.Name("attention.head_count");
  const std::string kv_heads = keys.Name("attention.head_count_kv");
  const std::string head_dim = keys.Name("attention.key_length");
  const std::string ffn = keys.Name("feed_forward_length");
  const std::string max_positions = keys.Name("context_length");
  const std::string vocab = keys.Name("vocab_size");
  return ValidateConfig(config, {.vocab = vocab,
                                 .hidden = hidden,
                                 .layers = layers,
                                 .heads = heads,
                                 .kv_heads = kv_heads,
                                 .head_dim = head_dim,
                                 .ffn = ffn,
                                 .max_positions = max_positions});
}

// The vocabulary is what the embedding has rows for; a vocab_size key must
// agree with it.
Result<int64_t> ReadVocab(const Checkpoint& checkpoint, const GgufKeys& keys) {
  const TensorView* table = checkpoint.Find("token_embd.weight");
  if (table == nullptr || table->shape.size() != 2) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format(
            "tensor 'token_embd.weight': expected a matrix, found {}",
            table == nullptr ? "nothing" : ShapeToString(table->shape))};
  }
  HX_ASSIGN_OR_RETURN(const int64_t said,
                      keys.IntOr("vocab_size", table->shape[0]));
  if (said != table->shape[0]) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("'{}': expected {}, the rows of tensor "
                             "'token_embd.weight', found {}",
                             keys.Name("vocab_size"), table->shape[0], said)};
  }
  return said;
}

// A divisor per frequency [R/2]; empty when there is no such tensor.
Result<std::vector<float>> ReadDivisors(const Checkpoint& checkpoint,
                                        std::string_view name, int64_t count) {
  std::vector<float> divisors;
  const TensorView* freqs = checkpoint.Find(name);
  if (freqs == nullptr) return divisors;
  const Shape expected = {count};
  if (freqs->dtype != DType::kF32 || freqs->shape != expected) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("tensor '{}': expected f32{}, found {}{}", name,
                             ShapeToString(expected), DTypeName(freqs->dtype),
                             ShapeToString(freqs->shape))};
  }
  divisors.resize(static_cast<size_t>(count));
  std::memcpy(divisors.data(), freqs->data.data(), freqs->data.size());
  for (const float divisor : divisors) {
    if (!(divisor > 0) || !std::isfinite(divisor)) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("tensor '{}': expected positive numbers, found {}", name,
                      divisor)};
    }
  }
  return divisors;
}

Result<RopeConfig> ReadRope(const Checkpoint& checkpoint, const GgufKeys& keys,
                            int64_t head_dim) {
  RopeConfig rope;
  HX_ASSIGN_OR_RETURN(rope.theta, keys.FloatOr("rope.freq_base", 10000.0));
  HX_ASSIGN_OR_RETURN(rope.rotary_dim,
                      keys.IntOr("rope.dimension_count", head_dim));
  if (rope.rotary_dim < 2 || rope.rotary_dim % 2 != 0 ||
      rope.rotary_dim > head_dim) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("'{}': expected an even number from 2 to the head "
                             "size {}, found {}",
                             keys.Name("rope.dimension_count"), head_dim,
                             rope.rotary_dim)};
  }
  HX_ASSIGN_OR_RETURN(const auto type, checkpoint.gguf()->FindString(
                                           keys.Name("rope.scaling.type")));
  // As in llama.cpp, a factor without a type means linear scaling.
  HX_ASSIGN_OR_RETURN(const double factor,
                      keys.FloatOr("rope.scaling.factor", 1.0));
  if (type.value_or("linear") == "linear") {
    rope.scaling = RopeScaling::kLinear;
    rope.factor = factor;
  } else if (*type != "none") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("'{}': expected none or linear, found '{}'",
                             keys.Name("rope.scaling.type"), *type)};
  }
  HX_RETURN_IF_ERROR(ValidateRope(rope));
  HX_ASSIGN_OR_RETURN(rope.freq_divisors, ReadDivisors(checkpoint, kRopeFreqs,
                                                       rope.rotary_dim / 2));
  return rope;
}

Bias BiasOf(const Checkpoint& checkpoint, std::string_view tensor) {
  return checkpoint.Find(tensor) == nullptr ? Bias::kNone : Bias::kPresent;
}

Status RefuseSpecialKeys(const GgufMetadata& metadata, const GgufKeys& keys,
                         std::span<const std::string_view> own_keys) {
  for (const std::string_view suffix : kSpecialKeys) {
    const std::string name = keys.Name(suffix);
    if (!metadata.Has(name) ||
        std::find(own_keys.begin(), own_keys.end(), suffix) != own_keys.end())
      continue;
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("'{}': expected a model without it, found it set", name)};
  }
  return OkStatus();
}

}  // namespace

std::string GgufKeys::Name(std::string_view suffix) const {
  return fmt::format("{}.{}", architecture_, suffix);
}

Result<int64_t> GgufKeys::Int(std::string_view suffix) const {
  HX_ASSIGN_OR_RETURN(const uint64_t value, metadata_.GetUint(Name(suffix)));
  return Narrow(suffix, value);
}

Result<int64_t> GgufKeys::IntOr(std::string_view suffix,
                                int64_t fallback) const {
  HX_ASSIGN_OR_RETURN(const auto value, metadata_.FindUint(Name(suffix)));
  if (!value) return fallback;
  return Narrow(suffix, *value);
}

Result<double> GgufKeys::Float(std::string_view suffix) const {
  return metadata_.GetFloat(Name(suffix));
}

Result<double> GgufKeys::FloatOr(std::string_view suffix,
                                 double fallback) const {
  HX_ASSIGN_OR_RETURN(const auto value, metadata_.FindFloat(Name(suffix)));
  return value.value_or(fallback);
}

Result<double> GgufKeys::FactorOr(std::string_view suffix,
                                  double fallback) const {
  HX_ASSIGN_OR_RETURN(const double value, FloatOr(suffix, fallback));
  if (value == 0) return fallback;
  return CheckMultiplier(Name(suffix), value);
}

Result<int64_t> GgufKeys::Narrow(std::string_view suffix,
                                 uint64_t value) const {
  if (value <= static_cast<uint64_t>(INT32_MAX))
    return static_cast<int64_t>(value);
  return Error{ErrorCode::kBadInput,
               fmt::format("'{}': expected at most {}, found {}", Name(suffix),
                           INT32_MAX, value)};
}

Result<DecoderConfig> ReadCommonGgufConfig(
    const Checkpoint& checkpoint, std::string_view architecture,
    std::span<const std::string_view> own_keys) {
  const GgufKeys keys(*checkpoint.gguf(), architecture);
  HX_RETURN_IF_ERROR(RefuseSpecialKeys(*checkpoint.gguf(), keys, own_keys));
  DecoderConfig config;
  HX_RETURN_IF_ERROR(ReadSizes(keys, config));
  HX_ASSIGN_OR_RETURN(config.vocab, ReadVocab(checkpoint, keys));
  HX_ASSIGN_OR_RETURN(config.norm_eps,
                      keys.Float("attention.layer_norm_rms_epsilon"));
  config.head =
      checkpoint.Find("output.weight") == nullptr ? Head::kTied : Head::kUntied;
  config.qkv_bias = BiasOf(checkpoint, "blk.0.attn_q.bias");
  config.attention_out_bias = BiasOf(checkpoint, "blk.0.attn_output.bias");
  config.mlp_bias = BiasOf(checkpoint, "blk.0.ffn_down.bias");
  HX_RETURN_IF_ERROR(CheckSizes(keys, config));
  HX_ASSIGN_OR_RETURN(RopeConfig rope,
                      ReadRope(checkpoint, keys, config.head_dim));
  SetUniformLayers(config, std::move(rope));
  return config;
}

Status ReadGgufLongRope(const Checkpoint& checkpoint,
                        std::string_view architecture, DecoderConfig& config) {
  RopeConfig& rope = config.ropes[0];
  const int64_t count = rope.rotary_dim / 2;
  HX_ASSIGN_OR_RETURN(rope.freq_divisors,
                      ReadDivisors(checkpoint, kShortFactors, count));
  HX_ASSIGN_OR_RETURN(rope.long_divisors,
                      ReadDivisors(checkpoint, kLongFactors, count));
  if (rope.freq_divisors.empty() != rope.long_divisors.empty()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("tensors '{}' and '{}': expected both or none, "
                             "found one",
                             kShortFactors, kLongFactors)};
  }
  if (rope.long_divisors.empty()) return OkStatus();
  const GgufKeys keys(*checkpoint.gguf(), architecture);
  HX_ASSIGN_OR_RETURN(rope.original_positions,
                      keys.Int("rope.scaling.original_context_length"));
  if (rope.original_positions < 1) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("'{}': expected at least 1, found 0",
                    keys.Name("rope.scaling.original_context_length"))};
  }
  HX_ASSIGN_OR_RETURN(
      rope.attention_factor,
      keys.FactorOr("rope.scaling.attn_factor",
                    LongRopeAttentionFactor(
                        static_cast<double>(config.max_positions) /
                            static_cast<double>(rope.original_positions),
                        rope.original_positions)));
  return OkStatus();
}

}  // namespace hexllm::models

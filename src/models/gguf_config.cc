#include "models/gguf_config.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "models/hf_config.h"

namespace hexllm::models {
namespace {

// Keys that change what a llama-like model computes in ways that hexllm does
// not have; their presence with a value is refused.
constexpr std::string_view kUnsupportedKeys[] = {
    "expert_count", "attention.sliding_window", "attention.scale",
    "logit_scale",  "residual_scale",           "embedding_scale"};

constexpr std::string_view kRopeFreqs = "rope_freqs.weight";

// Typed access to "<architecture>.<suffix>"; numbers come out as int64 within
// the bounds that ValidateConfig checks.
class Keys {
 public:
  Keys(const GgufMetadata& metadata, std::string_view architecture)
      : metadata_(metadata), architecture_(architecture) {}

  std::string Name(std::string_view suffix) const {
    return fmt::format("{}.{}", architecture_, suffix);
  }

  Result<int64_t> Int(std::string_view suffix) const {
    HX_ASSIGN_OR_RETURN(const uint64_t value, metadata_.GetUint(Name(suffix)));
    return Narrow(suffix, value);
  }
  Result<int64_t> IntOr(std::string_view suffix, int64_t fallback) const {
    HX_ASSIGN_OR_RETURN(const auto value, metadata_.FindUint(Name(suffix)));
    if (!value) return fallback;
    return Narrow(suffix, *value);
  }
  Result<double> FloatOr(std::string_view suffix, double fallback) const {
    HX_ASSIGN_OR_RETURN(const auto value, metadata_.FindFloat(Name(suffix)));
    return value.value_or(fallback);
  }

 private:
  Result<int64_t> Narrow(std::string_view suffix, uint64_t value) const {
    if (value <= static_cast<uint64_t>(INT32_MAX))
      return static_cast<int64_t>(value);
    return Error{ErrorCode::kBadInput,
                 fmt::format("'{}': expected at most {}, found {}",
                             Name(suffix), INT32_MAX, value)};
  }
  const GgufMetadata& metadata_;
  std::string_view architecture_;
};

Status ReadSizes(const Keys& keys, DecoderConfig& config) {
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

// The vocabulary is what the embedding has rows for; a vocab_size key must
// agree with it.
Result<int64_t> ReadVocab(const Checkpoint& checkpoint, const Keys& keys) {
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

Status ReadRopeFreqs(const Checkpoint& checkpoint, RopeConfig& rope) {
  const TensorView* freqs = checkpoint.Find(kRopeFreqs);
  if (freqs == nullptr) return OkStatus();
  const Shape expected = {rope.rotary_dim / 2};
  if (freqs->dtype != DType::kF32 || freqs->shape != expected) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("tensor '{}': expected f32{}, found {}{}", kRopeFreqs,
                    ShapeToString(expected), DTypeName(freqs->dtype),
                    ShapeToString(freqs->shape))};
  }
  rope.freq_divisors.resize(static_cast<size_t>(expected[0]));
  std::memcpy(rope.freq_divisors.data(), freqs->data.data(),
              freqs->data.size());
  for (const float divisor : rope.freq_divisors) {
    if (!(divisor > 0) || !std::isfinite(divisor)) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("tensor '{}': expected positive numbers, found {}",
                      kRopeFreqs, divisor)};
    }
  }
  return OkStatus();
}

Result<RopeConfig> ReadRope(const Checkpoint& checkpoint, const Keys& keys,
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
  HX_RETURN_IF_ERROR(ReadRopeFreqs(checkpoint, rope));
  return rope;
}

}  // namespace

Result<DecoderConfig> ReadCommonGgufConfig(const Checkpoint& checkpoint,
                                           std::string_view architecture) {
  const Keys keys(*checkpoint.gguf(), architecture);
  for (const std::string_view suffix : kUnsupportedKeys) {
    const std::string name = keys.Name(suffix);
    if (!checkpoint.gguf()->Has(name)) continue;
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("'{}': expected a model without it, found it set", name)};
  }
  DecoderConfig config;
  HX_RETURN_IF_ERROR(ReadSizes(keys, config));
  HX_ASSIGN_OR_RETURN(config.vocab, ReadVocab(checkpoint, keys));
  HX_ASSIGN_OR_RETURN(config.norm_eps,
                      checkpoint.gguf()->GetFloat(
                          keys.Name("attention.layer_norm_rms_epsilon")));
  config.head =
      checkpoint.Find("output.weight") == nullptr ? Head::kTied : Head::kUntied;
  config.attention_bias = checkpoint.Find("blk.0.attn_q.bias") == nullptr
                              ? Bias::kNone
                              : Bias::kPresent;
  HX_RETURN_IF_ERROR(ValidateConfig(config));
  HX_ASSIGN_OR_RETURN(config.rope, ReadRope(checkpoint, keys, config.head_dim));
  return config;
}

}  // namespace hexllm::models

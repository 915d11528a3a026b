#include "models/meta_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/hf_config.h"

namespace hexllm::models {
namespace {

constexpr SizeKeys kKeys = {.hidden = "dim",
                            .layers = "n_layers",
                            .heads = "n_heads",
                            .kv_heads = "n_kv_heads",
                            .head_dim = "dim' / 'n_heads",
                            .ffn = "hidden_dim",
                            .max_positions = "max_seq_len"};

constexpr std::string_view kTable = "tok_embeddings.weight";

// Defaults of the code that reads these files.
constexpr double kNormEps = 1e-5;
constexpr double kTheta = 10000.0;
constexpr int64_t kMultipleOf = 256;
// apply_scaling of Llama 3.1.
constexpr double kLowFreqFactor = 1.0;
constexpr double kHighFreqFactor = 4.0;
constexpr int64_t kOriginalPositions = 8192;
// max_seq_len is no key of Meta's files: the context that the models were
// published with.
constexpr int64_t kScaledPositions = 131072;
constexpr double kLlama3Theta = 500000.0;
constexpr int64_t kLlama2Positions = 4096;

// The scaling factor of the models that have one.
struct ScaleFactor {
  std::string_view model;  // begins the name of --decoder-model
  double factor;
};
constexpr ScaleFactor kScaleFactors[] = {
    {"llama3_1", 8.0},
    {"llama3_2", 32.0},
    {"llama3_3", 8.0},
};

// The table's rows; also what vocab_size must be where it is said (Llama 2
// says -1).
Result<int64_t> ReadVocab(const Json& params, const Checkpoint& checkpoint) {
  const TensorView* table = checkpoint.Find(kTable);
  if (table == nullptr || table->shape.size() != 2)
    return Error{ErrorCode::kBadInput,
                 fmt::format("tensor '{}': expected a matrix, found {}", kTable,
                             table == nullptr ? "nothing"
                                              : ShapeToString(table->shape))};
  HX_ASSIGN_OR_RETURN(const int64_t said, GetIntOr(params, "vocab_size", -1));
  return said == -1 ? table->shape[0] : said;
}

// hidden_dim, or what the reference code makes of dim: two thirds of four
// times it, times ffn_dim_multiplier, rounded up to multiple_of.
Result<int64_t> ReadFfn(const Json& params, int64_t dim) {
  HX_ASSIGN_OR_RETURN(const int64_t said, GetIntOr(params, "hidden_dim", 0));
  if (said != 0) return said;
  HX_ASSIGN_OR_RETURN(const double factor,
                      GetNumberOr(params, "ffn_dim_multiplier", 1.0));
  HX_ASSIGN_OR_RETURN(const int64_t multiple,
                      GetIntOr(params, "multiple_of", kMultipleOf));
  constexpr int64_t kMax = int64_t{1} << 26;
  if (dim < 1 || dim > kMax || multiple < 1 || multiple > kMax ||
      !(factor > 0 && factor < 1e6))
    return Error{ErrorCode::kBadInput,
                 fmt::format("'dim', 'multiple_of', 'ffn_dim_multiplier': "
                             "expected positive sizes, found {}, {}, {}",
                             dim, multiple, factor)};
  const auto wanted =
      static_cast<int64_t>(factor * static_cast<double>(8 * dim / 3));
  return (wanted + multiple - 1) / multiple * multiple;
}

Result<double> ReadScaleFactor(const Json& params,
                               std::string_view decoder_model) {
  if (FindMember(params, "rope_scale_factor") != nullptr)
    return GetNumber(params, "rope_scale_factor");
  for (const ScaleFactor& row : kScaleFactors) {
    if (decoder_model.starts_with(row.model)) return row.factor;
  }
  return Error{
      ErrorCode::kBadInput,
      "'use_scaled_rope': expected a 'rope_scale_factor' beside it, found "
      "none; name the model (--decoder-model llama3_2-1b_instruct) or its "
      "factor (--set rope_scale_factor=32 for Llama 3.2, 8 for Llama 3.1)"};
}

Result<RopeConfig> ReadRope(const Json& params, int64_t head_dim,
                            std::string_view decoder_model) {
  RopeConfig rope;
  rope.rotary_dim = head_dim;
  if (head_dim % 2 != 0)
    return Error{ErrorCode::kBadInput,
                 fmt::format("'dim' / 'n_heads': expected an even head size, "
                             "found {}",
                             head_dim)};
  HX_ASSIGN_OR_RETURN(rope.theta, GetNumberOr(params, "rope_theta", kTheta));
  HX_ASSIGN_OR_RETURN(const bool scaled,
                      GetBoolOr(params, "use_scaled_rope", false));
  if (scaled) {
    rope.scaling = RopeScaling::kLlama3;
    HX_ASSIGN_OR_RETURN(rope.factor, ReadScaleFactor(params, decoder_model));
    rope.low_freq_factor = kLowFreqFactor;
    rope.high_freq_factor = kHighFreqFactor;
    rope.original_positions = kOriginalPositions;
  } else if (FindMember(params, "rope_scale_factor") != nullptr) {
    return Error{ErrorCode::kBadInput,
                 "'rope_scale_factor': expected together with "
                 "use_scaled_rope true, found it alone"};
  }
  HX_RETURN_IF_ERROR(ValidateRope(rope));
  return rope;
}

int64_t DefaultPositions(const RopeConfig& rope) {
  if (rope.scaling == RopeScaling::kLlama3) return kScaledPositions;
  return rope.theta >= kLlama3Theta ? kOriginalPositions : kLlama2Positions;
}

// Meta's checkpoints always have an output; llama2.c's is the embedding's own
// storage.
Head HeadOf(const Checkpoint& checkpoint) {
  const TensorView* output = checkpoint.Find("output.weight");
  const TensorView* table = checkpoint.Find(kTable);
  const bool tied =
      output == nullptr ||
      (table != nullptr && output->data.data() == table->data.data() &&
       output->shape == table->shape);
  return tied ? Head::kTied : Head::kUntied;
}

}  // namespace

bool IsMetaLayout(const Checkpoint& checkpoint) {
  return checkpoint.format() != CheckpointFormat::kGguf &&
         checkpoint.Find(kTable) != nullptr;
}

Result<DecoderConfig> ReadMetaConfig(const Json& params,
                                     const Checkpoint& checkpoint,
                                     std::string_view decoder_model) {
  DecoderConfig config;
  HX_ASSIGN_OR_RETURN(config.vocab, ReadVocab(params, checkpoint));
  HX_ASSIGN_OR_RETURN(config.hidden, GetInt(params, "dim"));
  HX_ASSIGN_OR_RETURN(config.layers, GetInt(params, "n_layers"));
  HX_ASSIGN_OR_RETURN(config.heads, GetInt(params, "n_heads"));
  HX_ASSIGN_OR_RETURN(config.kv_heads,
                      GetIntOr(params, "n_kv_heads", config.heads));
  if (config.heads < 1 || config.hidden % config.heads != 0)
    return Error{
        ErrorCode::kBadInput,
        fmt::format("'n_heads': expected a divisor of dim {}, found {}",
                    config.hidden, config.heads)};
  config.head_dim = config.hidden / config.heads;
  HX_ASSIGN_OR_RETURN(config.ffn, ReadFfn(params, config.hidden));
  HX_ASSIGN_OR_RETURN(config.norm_eps,
                      GetNumberOr(params, "norm_eps", kNormEps));
  config.head = HeadOf(checkpoint);
  HX_ASSIGN_OR_RETURN(RopeConfig rope,
                      ReadRope(params, config.head_dim, decoder_model));
  HX_ASSIGN_OR_RETURN(config.max_positions,
                      GetIntOr(params, "max_seq_len", DefaultPositions(rope)));
  HX_RETURN_IF_ERROR(ValidateConfig(config, kKeys));
  SetUniformLayers(config, std::move(rope));
  return config;
}

}  // namespace hexllm::models

#include "compile/rotate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "artifact/format.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/half.h"
#include "compile/artifact_parts.h"
#include "compile/key_statistics.h"
#include "compile/rewrite_weights.h"
#include "ir/float_constant.h"
#include "models/decoder.h"
#include "quant/hadamard.h"

namespace hexllm {
namespace {

using models::DecoderConfig;
using models::ModelSource;
using quant::Rotation;
using quant::RotationKind;

constexpr std::string_view kTable = "model.embed_tokens.weight";
constexpr std::string_view kHead = "lm_head.weight";
constexpr std::string_view kLastNorm = "model.norm.weight";

// What happens to a matrix [N,K], or to a vector [N].
struct Change {
  std::string norm = {};          // its weights multiply the columns
  const Rotation* in = nullptr;   // of each piece of a row
  const Rotation* out = nullptr;  // of each piece of the rows
  bool is_folded_norm = false;    // becomes 1
};

std::string LayerPrefix(std::string_view name, int layer) {
  HX_CHECK(name.starts_with("model.layers."));
  return fmt::format("model.layers.{}.", layer);
}

class Folding {
 public:
  Folding(const ModelSource& source, const FoldedRotations& rotations,
          WeightRewriter writer)
      : config_(source.config),
        rotations_(rotations),
        writer_(std::move(writer)) {}

  Status Run(ProgressSink& progress);
  Result<ModelSource> Finish();

 private:
  const Rotation* R1() const {
    return rotations_.r1 ? &*rotations_.r1 : nullptr;
  }
  // Where norms are folded, the norm before `name`.
  std::string NormIfFolded(std::string name) const {
    return rotations_.r1 ? std::move(name) : std::string();
  }
  Change ChangeOf(std::string_view name) const;
  Change ChangeInLayer(std::string_view name, int layer) const;
  Status Write(const std::string& name, const ir::Constant& constant);
  TensorRewrite VectorRewrite(const Change& change) const;
  TensorRewrite MatrixRewrite(const ir::Constant& constant,
                              const Change& change) const;
  std::vector<float> NormWeights(const std::string& name) const;

  const DecoderConfig& config_;
  const FoldedRotations& rotations_;
  WeightRewriter writer_;
};

Change Folding::ChangeInLayer(std::string_view name, int layer) const {
  const std::string prefix = LayerPrefix(name, layer);
  const std::string_view part = name.substr(prefix.size());
  const Rotation* r2 = rotations_.r2.empty()
                           ? nullptr
                           : &rotations_.r2[static_cast<size_t>(layer)];
  const std::string first = prefix + "input_layernorm.weight";
  const std::string second = config_.layer_form == models::LayerForm::kParallel
                                 ? first
                                 : prefix + "post_attention_layernorm.weight";
  const auto is = [&](std::string_view wanted) { return part == wanted; };
  if (is("self_attn.q_proj.weight") || is("self_attn.k_proj.weight"))
    return {.norm = NormIfFolded(first), .in = R1()};
  if (is("self_attn.v_proj.weight"))
    return {.norm = NormIfFolded(first), .in = R1(), .out = r2};
  if (is("self_attn.v_proj.bias")) return {.out = r2};
  if (is("self_attn.o_proj.weight")) return {.in = r2, .out = R1()};
  if (is("mlp.gate_proj.weight") || is("mlp.up_proj.weight"))
    return {.norm = NormIfFolded(second), .in = R1()};
  if (is("self_attn.o_proj.bias") || is("mlp.down_proj.weight") ||
      is("mlp.down_proj.bias"))
    return {.out = R1()};
  const bool norm = name == first || name == second;
  return {.is_folded_norm = norm && rotations_.r1.has_value()};
}

Change Folding::ChangeOf(std::string_view name) const {
  if (name == kTable) return {.in = R1()};
  if (name == kHead)
    return {.norm = NormIfFolded(std::string(kLastNorm)), .in = R1()};
  if (name == kLastNorm) return {.is_folded_norm = rotations_.r1.has_value()};
  const auto layer = LayerOfName(name);
  return layer ? ChangeInLayer(name, *layer) : Change();
}

std::vector<float> Folding::NormWeights(const std::string& name) const {
  std::vector<float> weights = ir::ReadAllRows(*writer_.constants().at(name));
  for (float& weight : weights)
    weight += static_cast<float>(config_.norm_weight_offset);
  return weights;
}

TensorRewrite Folding::VectorRewrite(const Change& change) const {
  if (change.is_folded_norm) {
    const auto one = static_cast<float>(1 - config_.norm_weight_offset);
    return {.apply = [one](std::span<float> values, int64_t) {
      std::ranges::fill(values, one);
    }};
  }
  if (change.out == nullptr) return {};
  return {.apply = [out = change.out](std::span<float> values, int64_t) {
    out->ApplyToRows(values);
  }};
}

TensorRewrite Folding::MatrixRewrite(const ir::Constant& constant,
                                     const Change& change) const {
  if (change.norm.empty() && change.in == nullptr && change.out == nullptr)
    return {};
  std::vector<float> norm;
  if (!change.norm.empty()) norm = NormWeights(change.norm);
  TensorRewrite rewrite;
  if (change.out != nullptr) rewrite.rows_at_once = change.out->size();
  rewrite.apply = [change, norm = std::move(norm),
                   width = constant.type.shape[1]](std::span<float> rows,
                                                   int64_t) {
    for (size_t at = 0; !norm.empty() && at < rows.size(); at += norm.size()) {
      for (size_t k = 0; k < norm.size(); ++k) rows[at + k] *= norm[k];
    }
    if (change.in != nullptr) change.in->ApplyToRows(rows);
    if (change.out != nullptr) change.out->ApplyToColumns(rows, width);
  };
  return rewrite;
}

// `constant` in its own place, or the table in that of the head.
Status Folding::Write(const std::string& name, const ir::Constant& constant) {
  const Change change = ChangeOf(name);
  TensorRewrite rewrite = constant.type.shape.size() == 1
                              ? VectorRewrite(change)
                              : MatrixRewrite(constant, change);
  if (name == kTable) rewrite.dtype = rotations_.table;
  return writer_.Write(name, constant, rewrite);
}

Status Folding::Run(ProgressSink& progress) {
  const auto& constants = writer_.constants();
  progress.Begin("rotate weights", "tensors", std::ssize(constants));
  int64_t done = 0;
  for (const auto& [name, constant] : constants) {
    HX_RETURN_IF_ERROR(Write(name, *constant));
    progress.Update(++done);
  }
  if (!rotations_.r1 || config_.head != models::Head::kTied) return OkStatus();
  return Write(std::string(kHead), *constants.at(std::string(kTable)));
}

Result<ModelSource> Folding::Finish() {
  HX_ASSIGN_OR_RETURN(ModelSource made, writer_.Finish());
  if (rotations_.r1) made.config.head = models::Head::kUntied;
  return made;
}

Error CannotRotate(std::string_view key, const std::string& problem) {
  return Error{ErrorCode::kUnsupported,
               fmt::format("recipe: {}: {}; remove it", key, problem)};
}

Result<FoldedRotations> MakeRotations(const DecoderConfig& config,
                                      const quant::Rotations& wanted) {
  FoldedRotations made;
  if (wanted.r1 != RotationKind::kNone) {
    HX_ASSIGN_OR_RETURN(
        made.r1, Rotation::Make(wanted.r1, config.hidden, wanted.seed, "r1"));
  }
  if (wanted.r2 == RotationKind::kNone) return made;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    HX_ASSIGN_OR_RETURN(Rotation r2,
                        Rotation::Make(wanted.r2, config.head_dim, wanted.seed,
                                       fmt::format("r2 {}", layer)));
    made.r2.push_back(std::move(r2));
  }
  return made;
}

}  // namespace

Status CheckRotations(const DecoderConfig& config,
                      const quant::Rotations& wanted) {
  if (wanted.r1 != RotationKind::kNone) {
    if (config.norm != models::NormKind::kRms)
      return CannotRotate("r1",
                          "LayerNorm depends on the mean of the residual "
                          "stream, which a rotation changes");
    if (config.norm_placement != models::NormPlacement::kBefore)
      return CannotRotate("r1",
                          "the weights of norms behind attention and MLP "
                          "stand between the rotated linears and the residual "
                          "stream");
  }
  if (wanted.r3 != RotationKind::kNone && !quant::HasHadamard(config.head_dim))
    return CannotRotate("r3", fmt::format("expected heads of a power of two, "
                                          "found {}",
                                          config.head_dim));
  return OkStatus();
}

quant::Rotations PossibleRotations(const DecoderConfig& config,
                                   quant::Rotations wanted) {
  const auto drop_refused = [&](RotationKind& kind,
                                const quant::Rotations& alone) {
    if (!CheckRotations(config, alone).ok()) kind = RotationKind::kNone;
  };
  drop_refused(wanted.r1, {.r1 = wanted.r1});
  drop_refused(wanted.r3, {.r3 = wanted.r3});
  if (wanted.r1 == RotationKind::kNone && wanted.r2 == RotationKind::kNone)
    wanted.seed = 0;
  return wanted;
}

Result<ModelSource> FoldRotations(const ModelSource& source,
                                  const FoldedRotations& rotations,
                                  ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(WeightRewriter writer,
                      WeightRewriter::Create(source, "rotated weights"));
  Folding folding(source, rotations, std::move(writer));
  HX_RETURN_IF_ERROR(folding.Run(progress));
  return folding.Finish();
}

ModelSource RotateHeads(ModelSource source, const quant::Rotations& wanted) {
  if (wanted.r3 != RotationKind::kNone)
    source.config.head_rotation = quant::HadamardMatrix(source.config.head_dim);
  return source;
}

namespace {

// Bits that an element of `table` takes in its file.
double BitsOf(const ir::Constant& table) {
  const DTypeInfo& info = GetDTypeInfo(table.type.dtype);
  return 8.0 * info.block_bytes / info.block_elems;
}

// Where halves hold all numbers that a rotated row can have (none is larger
// than the row is long): kQ8_0 if the checkpoint's own table is no finer, else
// kF16.
Result<DType> TableType(const ModelSource& source) {
  HX_ASSIGN_OR_RETURN(const ir::Constant table, models::EmbeddingTable(source));
  std::vector<float> row(static_cast<size_t>(ir::RowElems(table)));
  for (int64_t i = 0; i < ir::NumRows(table); ++i) {
    ir::ReadRow(table, i, row);
    double squares = 0;
    for (const float value : row)
      squares += static_cast<double>(value) * static_cast<double>(value);
    if (!(std::sqrt(squares) <= static_cast<double>(kMaxHalf)))
      return DType::kF32;
  }
  const DTypeInfo& blocks = GetDTypeInfo(DType::kQ8_0);
  const bool fits = ir::RowElems(table) % blocks.block_elems == 0;
  return fits && BitsOf(table) <= 8.5 ? DType::kQ8_0 : DType::kF16;
}

// The types of rewritten tensors differ from stage to stage; the model does
// not.
uint64_t RotatedId(const ModelSource& source, const quant::Rotations& wanted) {
  ByteWriter out;
  out.Write(ModelId(source));
  for (const RotationKind kind : {wanted.r1, wanted.r2, wanted.r3})
    out.Write(static_cast<uint8_t>(kind));
  out.Write(static_cast<uint64_t>(wanted.seed));
  return artifact::Checksum(AsBytes(std::move(out).Take()));
}

}  // namespace

Result<ModelSource> RotateModel(ModelSource source, const quant::Recipe& recipe,
                                ProgressSink& progress) {
  const quant::Rotations& wanted = recipe.rotations;
  HX_RETURN_IF_ERROR(CheckRotations(source.config, wanted));
  HX_ASSIGN_OR_RETURN(FoldedRotations folded,
                      MakeRotations(source.config, wanted));
  if (folded.r1 || !folded.r2.empty()) {
    if (folded.r1 && quant::Quantizes(recipe)) {
      HX_ASSIGN_OR_RETURN(folded.table, TableType(source));
    }
    const uint64_t id = RotatedId(source, wanted);
    HX_ASSIGN_OR_RETURN(source, FoldRotations(source, folded, progress));
    source.id = id;
  }
  return RotateHeads(std::move(source), wanted);
}

}  // namespace hexllm

#include "compile/rotate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "artifact/format.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/half.h"
#include "base/quantize.h"
#include "base/scratch_file.h"
#include "compile/artifact_parts.h"
#include "compile/key_statistics.h"
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

// What happens to a matrix [N,K], or to a vector [N] as if K were 1.
struct Change {
  std::string norm = {};          // its weights multiply the columns
  const Rotation* in = nullptr;   // of each piece of a row
  const Rotation* out = nullptr;  // of each piece of the rows
  bool is_folded_norm = false;    // becomes 1
};

// Bytes of the source that may stay resident.
constexpr size_t kMostResident = size_t{64} << 20;

std::string LayerPrefix(std::string_view name, int layer) {
  HX_CHECK(name.starts_with("model.layers."));
  return fmt::format("model.layers.{}.", layer);
}

class Folding {
 public:
  Folding(const ModelSource& source, const FoldedRotations& rotations,
          ScratchFile file)
      : source_(source),
        config_(source.config),
        rotations_(rotations),
        file_(std::move(file)) {}

  Status Run(ProgressSink& progress);
  Result<ModelSource> Finish();

 private:
  struct Written {
    std::string name;
    ir::TensorType type;
    uint64_t offset;
  };

  const Rotation* R1() const {
    return rotations_.r1 ? &*rotations_.r1 : nullptr;
  }
  // Where norms are folded, the norm before `name`.
  std::string NormIfFolded(std::string name) const {
    return rotations_.r1 ? std::move(name) : std::string();
  }
  Change ChangeOf(std::string_view name) const;
  Change ChangeInLayer(std::string_view name, int layer) const;
  Status Write(const std::string& name, const ir::Constant& constant,
               const Change& change);
  Status WriteVector(const ir::Constant& constant, const Change& change);
  Status WriteValues(std::span<const float> values);
  Status WriteMatrix(const ir::Constant& constant, const Change& change);
  std::vector<float> NormWeights(const std::string& name) const;
  void ReleaseSource() const;

  const ModelSource& source_;
  const DecoderConfig& config_;
  const FoldedRotations& rotations_;
  std::map<std::string, const ir::Constant*> constants_;
  ScratchFile file_;
  std::vector<Written> written_;
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
  const ir::Constant& norm = *constants_.at(name);
  std::vector<float> weights(static_cast<size_t>(norm.type.shape[0]));
  ReadRow(norm, 0, weights);
  for (float& weight : weights)
    weight += static_cast<float>(config_.norm_weight_offset);
  return weights;
}

Status Folding::WriteVector(const ir::Constant& constant,
                            const Change& change) {
  std::vector<float> values(static_cast<size_t>(constant.type.shape[0]));
  ReadRow(constant, 0, values);
  if (change.out != nullptr) change.out->ApplyToRows(values);
  if (change.is_folded_norm) {
    std::fill(values.begin(), values.end(),
              static_cast<float>(1 - config_.norm_weight_offset));
  }
  return WriteValues(values);
}

// Whole rows, in the type of the tensor that is being written.
Status Folding::WriteValues(std::span<const float> values) {
  const DType dtype = written_.back().type.dtype;
  if (dtype == DType::kF32) return file_.Write(std::as_bytes(values));
  if (IsQuantizable(dtype)) {
    const DTypeInfo& info = GetDTypeInfo(dtype);
    std::vector<std::byte> blocks(values.size() / info.block_elems *
                                  info.block_bytes);
    QuantizeRow(dtype, values, blocks);
    return file_.Write(blocks);
  }
  std::vector<uint16_t> halves(values.size());
  std::transform(values.begin(), values.end(), halves.begin(), F32ToF16);
  return file_.Write(std::as_bytes(std::span(halves)));
}

Status Folding::WriteMatrix(const ir::Constant& constant,
                            const Change& change) {
  const int64_t rows = constant.type.shape[0];
  const auto width = static_cast<size_t>(constant.type.shape[1]);
  const int64_t most = change.out == nullptr ? 64 : change.out->size();
  std::vector<float> norm;
  if (!change.norm.empty()) norm = NormWeights(change.norm);
  std::vector<float> block;
  size_t resident = 0;
  for (int64_t first = 0; first < rows; first += most) {
    const int64_t count = std::min(most, rows - first);
    block.resize(static_cast<size_t>(count) * width);
    for (int64_t i = 0; i < count; ++i) {
      const std::span<float> row =
          std::span(block).subspan(static_cast<size_t>(i) * width, width);
      ReadRow(constant, first + i, row);
      for (size_t k = 0; k < norm.size(); ++k) row[k] *= norm[k];
    }
    if (change.in != nullptr) change.in->ApplyToRows(block);
    if (change.out != nullptr)
      change.out->ApplyToColumns(block, constant.type.shape[1]);
    HX_RETURN_IF_ERROR(WriteValues(block));
    resident += block.size() * sizeof(float);
    if (resident < kMostResident) continue;
    resident = 0;
    ReleaseSource();
  }
  return OkStatus();
}

Status Folding::Write(const std::string& name, const ir::Constant& constant,
                      const Change& change) {
  const DType dtype = name == kTable ? rotations_.table : DType::kF32;
  written_.push_back({name, {dtype, constant.type.shape}, file_.size()});
  HX_RETURN_IF_ERROR(constant.type.shape.size() == 1
                         ? WriteVector(constant, change)
                         : WriteMatrix(constant, change));
  ReleaseSource();
  return OkStatus();
}

void Folding::ReleaseSource() const {
  for (const TensorView& tensor : source_.checkpoint->tensors())
    source_.checkpoint->DropPages(tensor);
}

Status Folding::Run(ProgressSink& progress) {
  // Its constants are the model's weights under our names, in our order.
  const models::GraphRequest all{.kind = GraphKind::kKv,
                                 .step_tokens = 1,
                                 .context_tokens = 1,
                                 .logits = LogitsRows::kAll};
  HX_ASSIGN_OR_RETURN(const ir::Module module,
                      models::BuildDecoder(source_, {&all, 1}));
  const auto count = static_cast<int64_t>(module.constants.size());
  for (int32_t i = 0; i < count; ++i) {
    const ir::Constant& constant = module.constants[{i}];
    constants_[constant.name] = &constant;
  }
  progress.Begin("rotate weights", "tensors", count);
  int64_t done = 0;
  for (const auto& [name, constant] : constants_) {
    HX_RETURN_IF_ERROR(Write(name, *constant, ChangeOf(name)));
    progress.Update(++done);
  }
  if (rotations_.r1 && config_.head == models::Head::kTied) {
    HX_RETURN_IF_ERROR(Write(std::string(kHead),
                             *constants_.at(std::string(kTable)),
                             ChangeOf(kHead)));
  }
  return OkStatus();
}

Result<ModelSource> Folding::Finish() {
  HX_ASSIGN_OR_RETURN(MappedFile mapped, file_.Map());
  std::vector<TensorView> tensors;
  for (Written& tensor : written_) {
    const auto bytes = StorageBytes(tensor.type.dtype, tensor.type.shape);
    HX_CHECK(bytes.has_value());
    TensorView view{.name = std::move(tensor.name),
                    .dtype = tensor.type.dtype,
                    .shape = std::move(tensor.type.shape),
                    .data = {}};
    view.data =
        mapped.bytes().subspan(tensor.offset, static_cast<size_t>(*bytes));
    tensors.push_back(std::move(view));
  }
  ModelSource made = source_;
  made.checkpoint = std::make_shared<const Checkpoint>(Checkpoint::FromTensors(
      source_.checkpoint->path(), std::move(mapped), std::move(tensors)));
  made.naming = {};
  made.config.fused_shards = 1;
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
  HX_ASSIGN_OR_RETURN(ScratchFile file, ScratchFile::Create("rotated weights"));
  Folding folding(source, rotations, std::move(file));
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
    if (quant::Quantizes(recipe)) {
      HX_ASSIGN_OR_RETURN(folded.table, TableType(source));
    }
    const uint64_t id = RotatedId(source, wanted);
    HX_ASSIGN_OR_RETURN(source, FoldRotations(source, folded, progress));
    source.id = id;
  }
  return RotateHeads(std::move(source), wanted);
}

}  // namespace hexllm

#include "compile/rewrite_weights.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/half.h"
#include "base/quantize.h"
#include "models/decoder.h"

namespace hexllm {
namespace {

// Bytes of the source that may stay resident.
constexpr size_t kMostResident = size_t{64} << 20;

// Where tensors begin.
constexpr size_t kAlignment = 64;

}  // namespace

WeightRewriter::WeightRewriter(const models::ModelSource& source,
                               ir::Module module, ScratchFile file)
    : source_(source), module_(std::move(module)), file_(std::move(file)) {
  const auto count = static_cast<int32_t>(module_.constants.size());
  for (int32_t i = 0; i < count; ++i) {
    const ir::Constant& constant = module_.constants[{i}];
    // No checkpoint has it.
    if (constant.name == models::kHeadRotation) continue;
    constants_[constant.name] = &constant;
  }
}

Result<WeightRewriter> WeightRewriter::Create(const models::ModelSource& source,
                                              std::string what) {
  // Its constants are the model's weights under our names, in our order.
  const models::GraphRequest all{.kind = GraphKind::kKv,
                                 .step_tokens = 1,
                                 .context_tokens = 1,
                                 .logits = LogitsRows::kAll};
  HX_ASSIGN_OR_RETURN(ir::Module module,
                      models::BuildDecoder(source, {&all, 1}));
  HX_ASSIGN_OR_RETURN(ScratchFile file, ScratchFile::Create(std::move(what)));
  return WeightRewriter(source, std::move(module), std::move(file));
}

// Whole rows, in the type of the tensor that is being written.
Status WeightRewriter::WriteValues(std::span<const float> values) {
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

Status WeightRewriter::WriteRows(const ir::Constant& constant,
                                 const TensorRewrite& rewrite) {
  const int64_t rows = ir::NumRows(constant);
  const auto width = static_cast<size_t>(ir::RowElems(constant));
  std::vector<float> block;
  size_t resident = 0;
  for (int64_t first = 0; first < rows; first += rewrite.rows_at_once) {
    const int64_t count = std::min(rewrite.rows_at_once, rows - first);
    block.resize(static_cast<size_t>(count) * width);
    for (int64_t i = 0; i < count; ++i) {
      ReadRow(constant, first + i,
              std::span(block).subspan(static_cast<size_t>(i) * width, width));
    }
    rewrite.apply(block, first);
    HX_RETURN_IF_ERROR(WriteValues(block));
    resident += block.size() * sizeof(float);
    if (resident < kMostResident) continue;
    resident = 0;
    ReleaseSource();
  }
  return OkStatus();
}

Status WeightRewriter::Write(const std::string& name,
                             const ir::Constant& constant,
                             const TensorRewrite& rewrite) {
  const DType dtype = rewrite.apply ? rewrite.dtype : constant.type.dtype;
  const std::vector<std::byte> padding(
      (kAlignment - file_.size() % kAlignment) % kAlignment);
  HX_RETURN_IF_ERROR(file_.Write(padding));
  written_.push_back({name, {dtype, constant.type.shape}, file_.size()});
  if (rewrite.apply) {
    HX_RETURN_IF_ERROR(WriteRows(constant, rewrite));
  } else {
    for (int64_t i = 0; i < ir::NumRows(constant); ++i)
      HX_RETURN_IF_ERROR(file_.Write(ir::RowBytes(constant, i)));
  }
  ReleaseSource();
  return OkStatus();
}

void WeightRewriter::ReleaseSource() const {
  for (const TensorView& tensor : source_.checkpoint->tensors())
    source_.checkpoint->DropPages(tensor);
}

Result<models::ModelSource> WeightRewriter::Finish() {
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
  models::ModelSource made = source_;
  made.checkpoint = std::make_shared<const Checkpoint>(Checkpoint::FromTensors(
      source_.checkpoint->path(), std::move(mapped), std::move(tensors)));
  made.naming = {};
  made.config.fused_shards = 1;
  return made;
}

}  // namespace hexllm

#include "backend/htp/qnn_tensor.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/quote.h"

namespace hexllm::htp {
namespace {

constexpr uint32_t kMaxRank = 8;

struct TypeRow {
  DType dtype;
  abi::DataType plain;
  abi::DataType coded;  // = plain: cannot have an encoding
};
constexpr TypeRow kTypes[] = {
    {DType::kF32, abi::DataType::kFloat32, abi::DataType::kFloat32},
    {DType::kF16, abi::DataType::kFloat16, abi::DataType::kFloat16},
    {DType::kBool, abi::DataType::kBool8, abi::DataType::kBool8},
    {DType::kI8, abi::DataType::kInt8, abi::DataType::kSfixed8},
    {DType::kU8, abi::DataType::kUint8, abi::DataType::kUfixed8},
    {DType::kI16, abi::DataType::kInt16, abi::DataType::kSfixed16},
    {DType::kU16, abi::DataType::kUint16, abi::DataType::kUfixed16},
    {DType::kI32, abi::DataType::kInt32, abi::DataType::kSfixed32},
    {DType::kU32, abi::DataType::kUint32, abi::DataType::kUfixed32},
};

const TypeRow* FindType(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return &row;
  return nullptr;
}

abi::TensorType RawUse(TensorUse use) {
  switch (use) {
    case TensorUse::kInput:
      return abi::TensorType::kAppWrite;
    case TensorUse::kOutput:
      return abi::TensorType::kAppRead;
    case TensorUse::kInner:
      return abi::TensorType::kNative;
    case TensorUse::kStatic:
      return abi::TensorType::kStatic;
  }
  HX_CHECK(false);
}

Error Bad(const TensorSpec& spec, const std::string& what) {
  return {ErrorCode::kUsage,
          fmt::format("tensor {}: {}", Quoted(spec.name), what)};
}

// Scales: how many there must be, or nothing when the axis is outside.
std::optional<size_t> WantedScales(const TensorSpec& spec) {
  const int32_t axis = spec.encoding->axis;
  if (axis < 0) return 1;
  const auto index = static_cast<size_t>(axis);
  if (index >= spec.shape.size()) return std::nullopt;
  return static_cast<size_t>(spec.shape[index]);
}

Status CheckBlocks(const TensorSpec& spec) {
  const TensorEncoding& encoding = *spec.encoding;
  const size_t channels = encoding.scales.size();
  if (encoding.block_scales.empty()) return OkStatus();
  if (encoding.bits != 4 || encoding.axis < 0)
    return Bad(spec, "block factors need 4-bit codes and an axis");
  const auto elements = static_cast<size_t>(*NumElements(spec.shape));
  if (encoding.block_scales.size() % channels != 0 ||
      elements % encoding.block_scales.size() != 0) {
    return Bad(spec, fmt::format("{} block factors do not cut its {} elements "
                                 "evenly",
                                 encoding.block_scales.size(), elements));
  }
  for (const uint8_t factor : encoding.block_scales) {
    if (factor < 1 || factor > 16)
      return Bad(spec, fmt::format("block factor {} is not 1 to 16", factor));
  }
  return OkStatus();
}

// `bits` 0 is all; otherwise 2 or 4 bits of an i8 constant, as tested.
Status CheckWidth(const TensorSpec& spec) {
  const uint32_t bits = spec.encoding->bits;
  const uint32_t all = GetDTypeInfo(spec.dtype).block_bytes * 8;
  const bool narrow = (bits == 2 || bits == 4) && spec.dtype == DType::kI8 &&
                      spec.use == TensorUse::kStatic;
  if (bits == 0 || bits == all || narrow) return OkStatus();
  return Bad(
      spec, fmt::format("codes of {} bits in {}", bits, DTypeName(spec.dtype)));
}

Status CheckEncoding(const TensorSpec& spec) {
  const TensorEncoding& encoding = *spec.encoding;
  const TypeRow& row = *FindType(spec.dtype);
  if (row.plain == row.coded)
    return Bad(spec, fmt::format("{} has no codes", DTypeName(spec.dtype)));
  HX_RETURN_IF_ERROR(CheckWidth(spec));
  if (encoding.scales.empty()) {
    if (spec.dtype == DType::kI32 && spec.use == TensorUse::kStatic &&
        encoding.zero_points.empty() && encoding.block_scales.empty())
      return OkStatus();
    return Bad(spec, "only a constant i32 may leave its scale to the node");
  }
  const std::optional<size_t> wanted = WantedScales(spec);
  if (!wanted || encoding.scales.size() != *wanted) {
    return Bad(spec, fmt::format("{} scales along axis {} of {}",
                                 encoding.scales.size(), encoding.axis,
                                 ShapeToString(spec.shape)));
  }
  if (!encoding.zero_points.empty() &&
      encoding.zero_points.size() != encoding.scales.size())
    return Bad(
        spec, fmt::format("{} zero points for {} scales",
                          encoding.zero_points.size(), encoding.scales.size()));
  for (const float scale : encoding.scales) {
    if (!std::isfinite(scale) || scale <= 0)
      return Bad(spec, fmt::format("scale {} is not positive", scale));
  }
  // The library computes garbage for zero points per channel.
  const bool symmetric_only =
      encoding.axis >= 0 || encoding.bits == 2 || encoding.bits == 4;
  for (const int32_t zero : encoding.zero_points) {
    if (symmetric_only && zero != 0)
      return Bad(spec, "codes per channel or of 4 bits must be symmetric");
    if (zero == INT32_MIN) return Bad(spec, "zero point out of range");
  }
  return CheckBlocks(spec);
}

}  // namespace

std::string DescribeTensor(const TensorSpec& spec) {
  std::string text =
      fmt::format("{} {}", Printable(spec.name), DTypeName(spec.dtype));
  if (spec.encoding && spec.encoding->bits != 0)
    text += fmt::format("/{}", spec.encoding->bits);
  text += ShapeToString(spec.shape);
  if (!spec.encoding) return text;
  if (spec.encoding->axis >= 0)
    text += fmt::format(" per axis {}", spec.encoding->axis);
  if (!spec.encoding->block_scales.empty()) text += " in blocks";
  return text;
}

Status CheckTensorSpec(const TensorSpec& spec) {
  if (spec.name.empty() || spec.name.find('\0') != std::string::npos)
    return Bad(spec, "not a name");
  if (FindType(spec.dtype) == nullptr)
    return Bad(spec,
               fmt::format("QNN has no type for {}", DTypeName(spec.dtype)));
  for (const int64_t dim : spec.shape) {
    if (dim < 1 || dim > UINT32_MAX)
      return Bad(spec, fmt::format("shape {} has a dimension that is not 1 to "
                                   "2^32-1",
                                   ShapeToString(spec.shape)));
  }
  const std::optional<uint64_t> bytes = StorageBytes(spec.dtype, spec.shape);
  if (!bytes || *bytes > UINT32_MAX || spec.shape.size() > kMaxRank) {
    return Bad(spec, fmt::format("{} {} has more than 4 GiB or {} axes",
                                 DTypeName(spec.dtype),
                                 ShapeToString(spec.shape), kMaxRank));
  }
  return spec.encoding ? CheckEncoding(spec) : OkStatus();
}

TensorRecord::TensorRecord(TensorSpec spec) : spec_(std::move(spec)) {
  const TypeRow& row = *FindType(spec_.dtype);
  for (const int64_t dim : spec_.shape)
    dims_.push_back(static_cast<uint32_t>(dim));
  raw_.version = 1;
  raw_.v1.name = spec_.name.c_str();
  raw_.v1.type = RawUse(spec_.use);
  raw_.v1.data_type = spec_.encoding ? row.coded : row.plain;
  raw_.v1.rank = static_cast<uint32_t>(dims_.size());
  raw_.v1.dims = dims_.data();
  raw_.v1.quantization.definition = abi::kUndefined;
  raw_.v1.quantization.encoding = abi::Encoding::kNone;
  if (spec_.encoding && !spec_.encoding->scales.empty()) PointToEncoding();
}

void TensorRecord::PointToEncoding() {
  const TensorEncoding& from = *spec_.encoding;
  abi::Quantization& to = raw_.v1.quantization;
  const auto count = static_cast<uint32_t>(from.scales.size());
  for (uint32_t i = 0; i < count; ++i) {
    offsets_.push_back(from.zero_points.empty() ? 0 : -from.zero_points[i]);
    scale_offsets_.push_back({from.scales[i], offsets_[i]});
  }
  const bool narrow = from.bits == 2 || from.bits == 4;
  to.definition = abi::kDefined;
  if (!from.block_scales.empty()) {
    blocks_ = {
        .axis = from.axis,
        .scales = scale_offsets_.data(),
        .blocks = static_cast<uint32_t>(from.block_scales.size()) / count,
        .factor_bits = 4,
        .storage = 0,
        .factors = from.block_scales.data(),
    };
    to.encoding = abi::Encoding::kBlockExpansion;
    to.blocks = &blocks_;
  } else if (narrow && from.axis >= 0) {
    to.encoding = abi::Encoding::kNarrowAxis;
    to.narrow_axis = {from.bits, from.axis, count, from.scales.data(),
                      offsets_.data()};
  } else if (narrow) {
    to.encoding = abi::Encoding::kNarrow;
    to.narrow = {from.bits, from.scales[0], offsets_[0]};
  } else if (from.axis >= 0) {
    to.encoding = abi::Encoding::kAxis;
    to.axis = {from.axis, count, scale_offsets_.data()};
  } else {
    to.encoding = abi::Encoding::kScaleOffset;
    to.scale_offset = scale_offsets_[0];
  }
}

Result<TensorInfo> ReadTensor(const abi::Tensor& tensor) {
  const abi::TensorV1& raw = tensor.v1;
  if ((tensor.version != 1 && tensor.version != 2) || raw.name == nullptr ||
      raw.rank > kMaxRank || (raw.rank > 0 && raw.dims == nullptr)) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("a QNN tensor of version {} and rank {}",
                             tensor.version, raw.rank)};
  }
  TensorInfo info;
  info.id = raw.id;
  info.spec.name = raw.name;
  info.spec.use = raw.type == abi::TensorType::kAppRead ? TensorUse::kOutput
                                                        : TensorUse::kInput;
  info.spec.shape.assign(raw.dims, raw.dims + raw.rank);
  const TypeRow* found = nullptr;
  for (const TypeRow& row : kTypes)
    if (row.plain == raw.data_type || row.coded == raw.data_type) found = &row;
  const bool coded = found != nullptr && raw.data_type != found->plain;
  const abi::Quantization& quantization = raw.quantization;
  if (found == nullptr ||
      (coded && quantization.encoding != abi::Encoding::kScaleOffset)) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("QNN tensor {}: type {:#x} with encoding {}",
                    Quoted(raw.name), static_cast<uint32_t>(raw.data_type),
                    static_cast<uint32_t>(quantization.encoding))};
  }
  info.spec.dtype = found->dtype;
  if (coded) {
    const auto [scale, offset] = quantization.scale_offset;
    info.spec.encoding = TensorEncoding{
        .scales = {scale}, .zero_points = {offset == INT32_MIN ? 0 : -offset}};
  }
  const std::optional<uint64_t> bytes =
      StorageBytes(info.spec.dtype, info.spec.shape);
  if (!bytes || *bytes > UINT32_MAX)
    return Error{ErrorCode::kBadInput,
                 fmt::format("QNN tensor {} of {}", Quoted(raw.name),
                             ShapeToString(info.spec.shape))};
  info.bytes = *bytes;
  return info;
}

}  // namespace hexllm::htp

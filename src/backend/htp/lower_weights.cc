#include "backend/htp/lower_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/htp/lower_encodings.h"
#include "base/half.h"
#include "base/quote.h"
#include "ir/encode.h"

namespace hexllm::htp {
namespace {

using ir::Constant;
using ir::Encoding;

// Rows that are put into columns together: a cache line of codes.
constexpr int64_t kTileRows = 64;

// Reads `row`, widened. kBadInput when a number is not finite.
Status ReadFinite(const Constant& constant, int64_t row,
                  std::span<float> values) {
  ReadRow(constant, row, values);
  const auto finite = [](float value) { return std::isfinite(value); };
  if (std::all_of(values.begin(), values.end(), finite)) return OkStatus();
  return Error{
      ErrorCode::kBadInput,
      fmt::format("tensor {}, row {}: a weight is not a finite number; "
                  "the checkpoint is damaged",
                  Quoted(constant.name), row)};
}

// What elements of row `row` of a tensor become: codes of `encoding`, or the
// bits of f16.
struct RowCodes {
  const Encoding& encoding;
  int64_t row = 0;
};
void EncodeInto(const RowCodes& how, std::span<const float> values,
                std::span<int32_t> codes) {
  if (how.encoding.dtype != DType::kF16) {
    return EncodeRow(how.encoding, how.row, values, codes);
  }
  for (size_t i = 0; i < values.size(); ++i) codes[i] = F32ToF16(values[i]);
}

size_t ElementBytes(DType dtype) { return GetDTypeInfo(dtype).block_bytes; }

void Append(std::span<const int32_t> codes, DType dtype,
            std::vector<std::byte>& bytes) {
  const size_t size = ElementBytes(dtype);
  const size_t begin = bytes.size();
  bytes.resize(begin + codes.size() * size);
  for (size_t i = 0; i < codes.size(); ++i) {
    std::memcpy(bytes.data() + begin + i * size, &codes[i], size);
  }
}

bool IsFilterEncoding(const Encoding& encoding) {
  if (encoding.dtype == DType::kF16) return true;
  if (encoding.dtype == DType::kI16) return encoding.axis < 0;
  // Other blocks pass the library's validation and compute garbage.
  const bool known_block = encoding.block == 0 || encoding.block == 16 ||
                           encoding.block == 32 || encoding.block == 64;
  return encoding.dtype == DType::kI8 && encoding.axis <= 0 && known_block &&
         (encoding.bits == 0 || encoding.bits == 4 || encoding.bits == 8);
}

Status CheckFilter(const Constant& w) {
  if (!w.encoding) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("tensor {} has no encoding; the HTP needs weights "
                             "of i8, i16 or f16: choose a recipe with a static "
                             "scheme or fp16",
                             Quoted(w.name))};
  }
  const bool symmetric = std::all_of(w.encoding->zero_points.begin(),
                                     w.encoding->zero_points.end(),
                                     [](int32_t z) { return z == 0; });
  if (IsFilterEncoding(*w.encoding) && symmetric) return OkStatus();
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("tensor {}: the HTP has no {} weights of this form; it takes "
                  "symmetric i8 of 8 or 4 bits per tensor or row, 4 bits in "
                  "blocks of 16, 32 or 64, i16 per tensor, and f16",
                  Quoted(w.name), DTypeName(w.encoding->dtype))};
}

// The library computes garbage for blocks of 16 when there are more than 32
// input channels and no whole number of 32. For blocks of 64 it writes behind
// the end of its memory, but only once the context was serialized and loaded.
// Blocks of 32 are always right.
constexpr int64_t kSafeBlock = 32;

// Input channels of the filter that `w` becomes: zeros behind where needed.
int64_t FilterChannels(const Constant& w) {
  const int64_t columns = RowElems(w);
  if (w.encoding->block == 0 || columns <= kSafeBlock) return columns;
  return (columns + kSafeBlock - 1) / kSafeBlock * kSafeBlock;
}

// The factors of `w`, for blocks of at most 32: those of larger ones are there
// several times, and 1 stands for what is behind.
std::vector<uint8_t> FilterFactors(const Constant& w) {
  const int64_t block = w.encoding->block;
  if (block == 0) return {};
  const int64_t step = std::min(block, kSafeBlock);
  const int64_t blocks = RowElems(w) / block;
  const int64_t channels = FilterChannels(w);
  std::vector<uint8_t> factors;
  for (int64_t row = 0; row < NumRows(w); ++row) {
    for (int64_t k = 0; k < channels; k += step) {
      const auto from = static_cast<size_t>(row * blocks + k / block);
      factors.push_back(k < RowElems(w) ? w.encoding->block_scales[from]
                                        : uint8_t{1});
    }
  }
  return factors;
}

std::optional<TensorEncoding> FilterEncoding(const Constant& w, double factor) {
  const Encoding& encoding = *w.encoding;
  if (encoding.dtype == DType::kF16) return std::nullopt;
  return TensorEncoding{
      .bits = encoding.bits == 8 ? 0 : static_cast<uint32_t>(encoding.bits),
      .axis = encoding.axis < 0 ? -1 : 3,
      .scales = ScaledBy(factor, encoding).scales,
      .block_scales = FilterFactors(w)};
}

// The rows of a constant as the columns of a matrix [K,N].
class Transposer {
 public:
  Transposer(const Constant& w, double factor)
      : w_(w),
        factor_(w.encoding->dtype == DType::kF16 ? factor : 1),
        rows_(NumRows(w)),
        columns_(static_cast<size_t>(RowElems(w))),
        size_(ElementBytes(w.encoding->dtype)),
        values_(columns_),
        tile_(static_cast<size_t>(kTileRows) * columns_) {}

  Result<std::vector<std::byte>> Run() {
    std::vector<std::byte> bytes(static_cast<size_t>(rows_) * columns_ * size_);
    for (int64_t row = 0; row < rows_; row += kTileRows) {
      const int64_t count = std::min(kTileRows, rows_ - row);
      for (int64_t i = 0; i < count; ++i) {
        HX_RETURN_IF_ERROR(ReadCodes(row + i, i));
      }
      Place(row, count, bytes);
    }
    return bytes;
  }

 private:
  Status ReadCodes(int64_t row, int64_t tile_row) {
    HX_RETURN_IF_ERROR(ReadFinite(w_, row, values_));
    for (float& value : values_) value *= static_cast<float>(factor_);
    EncodeInto({.encoding = *w_.encoding, .row = row}, values_,
               std::span(tile_).subspan(
                   static_cast<size_t>(tile_row) * columns_, columns_));
    return OkStatus();
  }

  void Place(int64_t row, int64_t count, std::vector<std::byte>& bytes) const {
    for (size_t k = 0; k < columns_; ++k) {
      std::byte* to =
          bytes.data() +
          (k * static_cast<size_t>(rows_) + static_cast<size_t>(row)) * size_;
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        std::memcpy(to + i * size_, &tile_[i * columns_ + k], size_);
      }
    }
  }

  const Constant& w_;
  const double factor_;
  const int64_t rows_;
  const size_t columns_;
  const size_t size_;
  std::vector<float> values_;
  std::vector<int32_t> tile_;
};

// All numbers of a vector, rounded to its encoding if that has codes of its
// own.
Result<std::vector<float>> ReadVector(const Constant& constant) {
  std::vector<float> values(static_cast<size_t>(RowElems(constant)));
  HX_RETURN_IF_ERROR(ReadFinite(constant, 0, values));
  if (constant.encoding && constant.encoding->dtype != DType::kI32) {
    RoundToEncoding(*constant.encoding, constant.type.shape, values);
  }
  return values;
}

Result<StaticTensor> EncodedVector(std::span<const float> values,
                                   const Encoding& encoding, double factor) {
  std::vector<int32_t> codes(values.size());
  EncodeInto({.encoding = encoding}, values, codes);
  StaticTensor made{
      .spec = {.name = {},
               .use = TensorUse::kStatic,
               .dtype = encoding.dtype,
               .shape = {static_cast<int64_t>(values.size())},
               .encoding = TensorEncodingOf(ScaledBy(factor, encoding))},
      .bytes = {}};
  Append(codes, encoding.dtype, made.bytes);
  return made;
}

// Codes from the least to the greatest of the numbers and 0.
Encoding CodesFor(std::span<const float> values, DType dtype) {
  float least = 0;
  float most = 0;
  for (const float value : values) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const auto codes = static_cast<float>(ir::CodesOf({.dtype = dtype}).most);
  const float scale = std::max((most - least) / codes, 1e-30f);
  const float zero = std::clamp(std::rint(-least / scale), 0.0f, codes);
  return {.dtype = dtype,
          .scales = {scale},
          .zero_points = {static_cast<int32_t>(zero)}};
}

// The same around the middle code.
Encoding MiddleCodesFor(std::span<const float> values, DType dtype) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::fabs(value));
  const int32_t middle = (ir::CodesOf({.dtype = dtype}).most + 1) / 2;
  return {.dtype = dtype,
          .scales = {std::max(most / static_cast<float>(middle - 1), 1e-30f)},
          .zero_points = {middle}};
}

StaticTensor BiasTensor(std::span<const int32_t> codes,
                        TensorEncoding encoding) {
  StaticTensor made{.spec = {.name = {},
                             .use = TensorUse::kStatic,
                             .dtype = DType::kI32,
                             .shape = {std::ssize(codes)},
                             .encoding = std::move(encoding)},
                    .bytes = {}};
  Append(codes, DType::kI32, made.bytes);
  return made;
}

}  // namespace

Result<StaticTensor> MakeFilter(const Constant& w, double factor) {
  HX_RETURN_IF_ERROR(CheckFilter(w));
  const int64_t channels = FilterChannels(w);
  StaticTensor made{.spec = {.name = {},
                             .use = TensorUse::kStatic,
                             .dtype = w.encoding->dtype,
                             .shape = {1, 1, channels, NumRows(w)},
                             .encoding = FilterEncoding(w, factor)},
                    .bytes = {}};
  HX_ASSIGN_OR_RETURN(made.bytes, Transposer(w, factor).Run());
  const auto behind =
      static_cast<size_t>((channels - RowElems(w)) * NumRows(w));
  made.bytes.resize(made.bytes.size() + behind);  // of one byte each
  return made;
}

StaticTensor MakeZeros(TensorSpec spec) {
  const int32_t zero = ZeroPointOf(EncodingOfSpec(spec));
  const std::vector<int32_t> codes(
      static_cast<size_t>(*NumElements(spec.shape)), zero);
  StaticTensor made{.spec = std::move(spec), .bytes = {}};
  Append(codes, made.spec.dtype, made.bytes);
  return made;
}

Result<StaticTensor> MakeBias(const Constant& bias, const BiasScales& scales) {
  HX_ASSIGN_OR_RETURN(const std::vector<float> values, ReadVector(bias));
  const std::vector<float>& w_scales = scales.w.encoding->scales;
  const bool per_tensor = scales.w.encoding->axis < 0;
  std::vector<int32_t> codes;
  for (size_t n = 0; n < values.size(); ++n) {
    const float w_scale = w_scales[per_tensor ? 0 : n];
    codes.push_back(ir::EncodeBias(
        values[n], scales.x_scale * static_cast<double>(w_scale)));
  }
  const double factored = scales.x_scale * scales.factor;
  return BiasTensor(codes,
                    {.axis = per_tensor ? -1 : 0,
                     .scales = ScaledBy(factored, *scales.w.encoding).scales});
}

Result<StaticTensor> MakeHalfBias(const Constant& bias, double factor) {
  HX_ASSIGN_OR_RETURN(std::vector<float> values, ReadVector(bias));
  for (float& value : values) value *= static_cast<float>(factor);
  return EncodedVector(values, {.dtype = DType::kF16}, 1);
}

Result<StaticTensor> MakeTable(const Constant& table,
                               const Encoding& encoding) {
  StaticTensor made{.spec = {.name = {},
                             .use = TensorUse::kStatic,
                             .dtype = encoding.dtype,
                             .shape = table.type.shape,
                             .encoding = TensorEncodingOf(encoding)},
                    .bytes = {}};
  made.bytes.reserve(static_cast<size_t>(NumRows(table) * RowElems(table)) *
                     ElementBytes(encoding.dtype));
  std::vector<float> values(static_cast<size_t>(RowElems(table)));
  std::vector<int32_t> codes(values.size());
  for (int64_t row = 0; row < NumRows(table); ++row) {
    HX_RETURN_IF_ERROR(ReadFinite(table, row, values));
    EncodeInto({.encoding = encoding}, values, codes);
    Append(codes, encoding.dtype, made.bytes);
  }
  return made;
}

Result<StaticTensor> MakeGamma(const Constant& w, const GammaForm& form) {
  HX_ASSIGN_OR_RETURN(std::vector<float> values, ReadVector(w));
  for (float& value : values) value += static_cast<float>(form.offset);
  if (form.dtype == DType::kF16) {
    for (float& value : values) value *= static_cast<float>(form.factor);
    return EncodedVector(values, {.dtype = DType::kF16}, 1);
  }
  const bool as_it_is = form.offset == 0 && !form.symmetric && w.encoding &&
                        w.encoding->dtype == form.dtype;
  if (as_it_is) return EncodedVector(values, *w.encoding, form.factor);
  const Encoding made = form.symmetric ? MiddleCodesFor(values, form.dtype)
                                       : CodesFor(values, form.dtype);
  return EncodedVector(values, made, form.factor);
}

Result<StaticTensor> MakeBeta(const Constant& bias, DType dtype) {
  if (dtype == DType::kF16) return MakeHalfBias(bias, 1);
  HX_ASSIGN_OR_RETURN(const std::vector<float> values, ReadVector(bias));
  const auto& encoding = bias.encoding;
  const bool has_codes = encoding && ir::HasCodes(*encoding);
  const float scale =
      has_codes ? encoding->scales[0] : CodesFor(values, DType::kU16).scales[0];
  std::vector<int32_t> codes;
  for (const float value : values)
    codes.push_back(ir::EncodeBias(value, static_cast<double>(scale)));
  return BiasTensor(codes, {.axis = -1, .scales = {scale}});
}

}  // namespace hexllm::htp

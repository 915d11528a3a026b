#include "ir/constant.h"

#include "base/check.h"
#include "base/dequantize.h"
#include "ir/encode.h"

namespace hexllm::ir {

int64_t NumRows(const Constant& constant) {
  const Shape& shape = constant.type.shape;
  return shape.size() < 2 ? 1 : shape[0];
}

int64_t RowElems(const Constant& constant) {
  const Shape& shape = constant.type.shape;
  const size_t first = shape.size() < 2 ? 0 : 1;
  const auto count = NumElements(
      Shape(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end()));
  HX_CHECK(count.has_value());
  return *count;
}

ByteSpan RowBytes(const Constant& constant, int64_t row) {
  HX_CHECK(row >= 0 && row < NumRows(constant) && constant.codes.empty());
  const auto row_bytes =
      StorageBytes(constant.type.dtype, {RowElems(constant)});
  HX_CHECK(row_bytes.has_value());
  const int64_t stored =
      constant.rows.empty() ? row : constant.rows[static_cast<size_t>(row)];
  const auto offset = CheckedMul(static_cast<uint64_t>(stored), *row_bytes);
  HX_CHECK(offset.has_value());
  const auto bytes = Slice(constant.bytes, *offset, *row_bytes);
  HX_CHECK(bytes.has_value());
  return *bytes;
}

void ReadRow(const Constant& constant, int64_t row, std::span<float> out) {
  HX_CHECK(static_cast<int64_t>(out.size()) == RowElems(constant));
  if (!constant.codes.empty()) {
    const auto codes = Slice(
        constant.codes, static_cast<uint64_t>(row) * out.size(), out.size());
    HX_CHECK(codes.has_value() && constant.encoding.has_value());
    return DecodeRow(*constant.encoding, row, *codes, out);
  }
  DequantizeRow(constant.type.dtype, RowBytes(constant, row), out);
}

ConstantId ConstantStore::Add(Constant constant) {
  constants_.push_back(std::move(constant));
  return {static_cast<int32_t>(constants_.size() - 1)};
}

const Constant& ConstantStore::operator[](ConstantId id) const {
  HX_CHECK(id.valid() && static_cast<size_t>(id.index) < constants_.size());
  return constants_[static_cast<size_t>(id.index)];
}

void ConstantStore::SetEncoding(ConstantId id, Encoding encoding) {
  HX_CHECK(id.valid() && static_cast<size_t>(id.index) < constants_.size());
  Constant& constant = constants_[static_cast<size_t>(id.index)];
  constant.encoding = std::move(encoding);
  constant.codes = {};
  constant.codes_owner = {};
}

void ConstantStore::SetCodes(ConstantId id, ByteSpan codes,
                             std::shared_ptr<const void> owner) {
  HX_CHECK((*this)[id].encoding.has_value());
  Constant& constant = constants_[static_cast<size_t>(id.index)];
  constant.codes = codes;
  constant.codes_owner = std::move(owner);
}

}  // namespace hexllm::ir

#include "runtime/embedding.h"

#include "base/check.h"
#include "base/dequantize.h"
#include "runtime/io_codec.h"

namespace hexllm {

EmbeddingFiller::EmbeddingFiller(const artifact::IoSpec& spec, DType dtype,
                                 ByteSpan rows, std::span<std::byte> out)
    : spec_(spec),
      dtype_(dtype),
      table_(rows),
      out_(out),
      row_(static_cast<size_t>(spec.shape.at(1))),
      row_bytes_(StorageBytes(dtype, {spec.shape.at(1)}).value()) {}

void EmbeddingFiller::Fill(std::span<const int32_t> ids) {
  const auto rows = static_cast<size_t>(spec_.shape[0]);
  HX_CHECK(ids.size() <= rows);
  const size_t padding = rows - ids.size();
  for (size_t row = 0; row < padding; ++row) FillRow(row, 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    HX_CHECK(ids[i] >= 0);
    FillRow(padding + i, static_cast<size_t>(ids[i]));
  }
}

void EmbeddingFiller::FillRow(size_t row, size_t id) {
  HX_CHECK(id < table_.size() / row_bytes_);
  DequantizeRow(dtype_, table_.subspan(id * row_bytes_, row_bytes_), row_);
  const size_t bytes = row_.size() * ElementBytes(spec_.dtype);
  EncodeFloats(row_, spec_, out_.subspan(row * bytes, bytes));
}

}  // namespace hexllm

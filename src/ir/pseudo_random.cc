#include "ir/pseudo_random.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/dequantize.h"
#include "base/half.h"

namespace hexllm::ir {
namespace {

constexpr uint64_t kMaxStoredBytes = 256 * 1024;

// Where a block type keeps its f16 scale and minimum, and a scale that brings
// the block's values within about -0.5 .. 0.5. Layouts: base/dequantize.h. The
// other bytes of a block are codes and sub-scales: any bits will do.
struct BlockRow {
  DType dtype;
  size_t scale_offset;
  float scale;
  int min_offset;   // -1 = none
  float min_ratio;  // minimum / scale
};

constexpr BlockRow kBlocks[] = {
    {DType::kQ4_0, 0, 1.0f / 16, -1, 0},
    {DType::kQ4_1, 0, 1.0f / 16, 2, -7.5f},
    {DType::kQ5_0, 0, 1.0f / 32, -1, 0},
    {DType::kQ5_1, 0, 1.0f / 32, 2, -15.5f},
    {DType::kQ8_0, 0, 1.0f / 256, -1, 0},
    {DType::kQ2_K, 80, 1.0f / 64, 82, 1.5f},
    {DType::kQ3_K, 108, 1.0f / 256, -1, 0},
    {DType::kQ4_K, 0, 1.0f / 1024, 2, 7.5f},
    {DType::kQ5_K, 0, 1.0f / 2048, 2, 15.5f},
    {DType::kQ6_K, 208, 1.0f / 8192, -1, 0},
};

template <typename T>
void Store(std::string& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

void FillBlocks(const BlockRow& row, PseudoRandom& random, std::string& bytes) {
  for (char& c : bytes) c = static_cast<char>(random.Next());
  const size_t block = GetDTypeInfo(row.dtype).block_bytes;
  for (size_t at = 0; at < bytes.size(); at += block) {
    const float scale = row.scale * (0.5f + 0.5f * random.Unit());
    Store(bytes, at + row.scale_offset, F32ToF16(scale));
    if (row.min_offset < 0) continue;
    Store(bytes, at + static_cast<size_t>(row.min_offset),
          F32ToF16(scale * row.min_ratio));
  }
}

void StoreFloat(DType dtype, float value, std::string& bytes, size_t index) {
  switch (dtype) {
    case DType::kF32:
      return Store(bytes, index * 4, value);
    case DType::kF16:
      return Store(bytes, index * 2, F32ToF16(value));
    case DType::kBF16:
      return Store(bytes, index * 2, F32ToBF16(value));
    case DType::kF64:
      return Store(bytes, index * 8, static_cast<double>(value));
    default:
      CheckFailed(__FILE__, __LINE__, "a float type without a rule here");
  }
}

std::string MakeBytes(DType dtype, uint64_t size, PseudoRandom random) {
  std::string bytes(static_cast<size_t>(size), '\0');
  for (const BlockRow& row : kBlocks) {
    if (row.dtype != dtype) continue;
    FillBlocks(row, random, bytes);
    return bytes;
  }
  const size_t count = bytes.size() / GetDTypeInfo(dtype).block_bytes;
  for (size_t i = 0; i < count; ++i)
    StoreFloat(dtype, random.Unit() - 0.5f, bytes, i);
  return bytes;
}

// Bytes of one row of a constant of `type`; nothing when the type is no
// constant's.
std::optional<uint64_t> RowSize(const TensorType& type) {
  if (!IsFloatLike(type.dtype)) return std::nullopt;
  const auto total = StorageBytes(type.dtype, type.shape);
  if (!total || *total == 0) return std::nullopt;
  const Constant shape_only{.name = {}, .type = type};
  return StorageBytes(type.dtype, {RowElems(shape_only)});
}

}  // namespace

PseudoRandom::PseudoRandom(std::string_view text)
    : state_(0xcbf29ce484222325u) {
  for (const char c : text)
    state_ = (state_ ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
}

uint64_t PseudoRandom::Next() {
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

float PseudoRandom::Unit() {
  return static_cast<float>(Next() >> 40) * 0x1p-24f;
}

std::optional<uint64_t> RandomConstantBytes(const TensorType& type) {
  const auto row = RowSize(type);
  if (!row) return std::nullopt;
  const uint64_t total = *StorageBytes(type.dtype, type.shape);
  return std::min(total, std::max<uint64_t>(1, kMaxStoredBytes / *row) * *row);
}

Constant MakeRandomConstant(std::string name, TensorType type) {
  const auto size = RandomConstantBytes(type);
  HX_CHECK(size.has_value());
  Constant constant{.name = std::move(name), .type = std::move(type)};
  const PseudoRandom random(constant.name);
  constant.owned = std::make_shared<const std::string>(
      MakeBytes(constant.type.dtype, *size, random));
  constant.bytes = AsBytes(*constant.owned);
  const int64_t stored = static_cast<int64_t>(*size / *RowSize(constant.type));
  const int64_t rows = NumRows(constant);
  if (stored == rows) return constant;
  constant.rows.reserve(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) constant.rows.push_back(i % stored);
  return constant;
}

}  // namespace hexllm::ir

// Reading reference vectors (tests/data/quant) and running them through the
// production functions. For the tests of quant/.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "ir/encode.h"
#include "quant/range.h"
#include "quant/row_stats.h"
#include "quant/weight_encoding.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/ir_tensors.h"

namespace hexllm::quant {

// A file of reference tensors; reads any of their types.
class Vectors {
 public:
  explicit Vectors(const std::string& file) {
    auto opened = Checkpoint::Open(testing::DataPath("quant/" + file));
    if (!opened.ok()) {
      ADD_FAILURE() << opened.error().message;
      return;
    }
    file_ = std::make_unique<Checkpoint>(std::move(*opened));
  }

  std::vector<float> Floats(const std::string& name) const {
    return Read<float>(name);
  }
  // Of any integer type, or f64 that holds whole numbers.
  std::vector<int64_t> Ints(const std::string& name) const {
    const TensorView* tensor = Find(name);
    if (tensor == nullptr) return {};
    switch (tensor->dtype) {
      case DType::kU8:
        return Widened(Read<uint8_t>(name));
      case DType::kI8:
        return Widened(Read<int8_t>(name));
      case DType::kU16:
        return Widened(Read<uint16_t>(name));
      case DType::kI16:
        return Widened(Read<int16_t>(name));
      case DType::kI32:
        return Widened(Read<int32_t>(name));
      case DType::kI64:
        return Read<int64_t>(name);
      default:
        ADD_FAILURE() << name << ": " << DTypeName(tensor->dtype);
        return {};
    }
  }
  // [scale, zero point] as f64.
  std::vector<double> Doubles(const std::string& name) const {
    return Read<double>(name);
  }
  Shape ShapeOf(const std::string& name) const {
    const TensorView* tensor = Find(name);
    return tensor == nullptr ? Shape{} : tensor->shape;
  }

 private:
  const TensorView* Find(const std::string& name) const {
    const TensorView* tensor = file_ == nullptr ? nullptr : file_->Find(name);
    if (tensor == nullptr) ADD_FAILURE() << "no tensor " << name;
    return tensor;
  }
  template <typename T>
  std::vector<T> Read(const std::string& name) const {
    const TensorView* tensor = Find(name);
    if (tensor == nullptr) return {};
    EXPECT_EQ(GetDTypeInfo(tensor->dtype).block_bytes, sizeof(T)) << name;
    std::vector<T> values(tensor->data.size() / sizeof(T));
    std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
    return values;
  }
  template <typename T>
  static std::vector<int64_t> Widened(const std::vector<T>& values) {
    return {values.begin(), values.end()};
  }

  std::unique_ptr<Checkpoint> file_;
};

// A constant with a copy of `values`.
inline ir::Constant Owned(Shape shape, const std::vector<float>& values) {
  ir::Constant constant;
  constant.name = "w";
  constant.type = testing::F32Type(std::move(shape));
  constant.owned = std::make_shared<const std::string>(
      AsText(std::as_bytes(std::span(values))));
  constant.bytes = AsBytes(*constant.owned);
  return constant;
}

inline LayerSettings SettingsOf(
    std::string_view scheme,
    WeightGranularity granularity = WeightGranularity::kPerChannel) {
  return {.scheme = FindScheme(scheme), .granularity = granularity};
}

inline ir::Encoding Encode(const ir::Constant& weight,
                           const LayerSettings& settings) {
  auto encoding = WeightEncoding(weight, settings, nullptr);
  if (!encoding.ok()) {
    ADD_FAILURE() << encoding.error().message;
    return {};
  }
  return std::move(*encoding);
}

// All codes of [rows, columns] values.
inline std::vector<int64_t> CodesOf(const ir::Encoding& encoding,
                                    const std::vector<float>& values,
                                    int64_t columns) {
  std::vector<int64_t> all;
  std::vector<int32_t> codes(static_cast<size_t>(columns));
  for (size_t at = 0; at < values.size(); at += codes.size()) {
    EncodeRow(encoding, static_cast<int64_t>(at / codes.size()),
              std::span(values).subspan(at, codes.size()), codes);
    all.insert(all.end(), codes.begin(), codes.end());
  }
  return all;
}

inline std::vector<float> Rounded(const ir::Encoding& encoding,
                                  const Shape& shape,
                                  std::vector<float> values) {
  RoundToEncoding(encoding, shape, values);
  return values;
}

inline Range RangeOfAll(const std::vector<float>& values) {
  return StatsOf(values).extremes;
}

}  // namespace hexllm::quant

// Makes GGUF files for tests, sound ones and damaged ones. Writes the format
// with its own numbers, not with the reader's tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace hexllm::testing {

// The type number of a C++ type in GGUF metadata.
template <typename T>
constexpr uint32_t GgufTypeNumber() {
  if constexpr (std::is_same_v<T, uint8_t>) return 0;
  if constexpr (std::is_same_v<T, int8_t>) return 1;
  if constexpr (std::is_same_v<T, uint16_t>) return 2;
  if constexpr (std::is_same_v<T, int16_t>) return 3;
  if constexpr (std::is_same_v<T, uint32_t>) return 4;
  if constexpr (std::is_same_v<T, int32_t>) return 5;
  if constexpr (std::is_same_v<T, float>) return 6;
  if constexpr (std::is_same_v<T, bool>) return 7;
  if constexpr (std::is_same_v<T, std::string>) return 8;
  if constexpr (std::is_same_v<T, uint64_t>) return 10;
  if constexpr (std::is_same_v<T, int64_t>) return 11;
  if constexpr (std::is_same_v<T, double>) return 12;
}
inline constexpr uint32_t kGgufArrayNumber = 9;

//   GgufBuilder().Add<uint32_t>("llama.block_count", 2)
//                .AddArray<std::string>("tokenizer.ggml.tokens", {"a", "b"})
//                .Tensor({.name = "w", .dims = {4, 2}, .data = bytes}).Build()
class GgufBuilder {
 public:
  struct TensorSpec {
    std::string name;
    std::vector<uint64_t> dims;  // as in the file: innermost first
    uint32_t type = 0;           // ggml type; 0 = F32
    std::string data;
    // Default: after the tensor before it, aligned.
    std::optional<uint64_t> offset = std::nullopt;
  };

  // A value of type T: any number type, bool or std::string.
  template <typename T>
  GgufBuilder& Add(std::string_view key, const std::type_identity_t<T>& value) {
    Key(key, GgufTypeNumber<T>());
    Value<T>(value);
    return *this;
  }
  template <typename T>
  GgufBuilder& AddArray(std::string_view key, const std::vector<T>& values) {
    Key(key, kGgufArrayNumber);
    entries_.Write<uint32_t>(GgufTypeNumber<T>());
    entries_.Write<uint64_t>(values.size());
    for (const T& value : values) Value<T>(value);
    return *this;
  }
  // A key whose type number and value bytes are given as they are.
  GgufBuilder& AddRaw(std::string_view key, uint32_t type,
                      std::string_view value) {
    Key(key, type);
    entries_.WriteBytes(AsBytes(value));
    return *this;
  }
  GgufBuilder& Tensor(TensorSpec spec) {
    tensors_.push_back(std::move(spec));
    return *this;
  }
  GgufBuilder& Version(uint32_t version) {
    version_ = version;
    return *this;
  }
  // The alignment of the data; does not write general.alignment.
  GgufBuilder& Align(uint64_t alignment) {
    alignment_ = alignment;
    return *this;
  }
  // What the header says instead of the true numbers.
  GgufBuilder& ClaimTensors(uint64_t count) {
    claimed_tensors_ = count;
    return *this;
  }
  GgufBuilder& ClaimEntries(uint64_t count) {
    claimed_entries_ = count;
    return *this;
  }

  std::string Build() const {
    ByteWriter out;
    out.WriteBytes(AsBytes("GGUF"));
    out.Write<uint32_t>(version_);
    out.Write<uint64_t>(claimed_tensors_.value_or(tensors_.size()));
    out.Write<uint64_t>(claimed_entries_.value_or(entry_count_));
    out.WriteBytes(AsBytes(ByteWriter(entries_).Take()));
    std::string data;
    for (const TensorSpec& tensor : tensors_) {
      const uint64_t offset = tensor.offset.value_or(Aligned(data.size()));
      out.WriteString(tensor.name);
      out.Write<uint32_t>(static_cast<uint32_t>(tensor.dims.size()));
      for (const uint64_t dim : tensor.dims) out.Write<uint64_t>(dim);
      out.Write<uint32_t>(tensor.type);
      out.Write<uint64_t>(offset);
      data.resize(static_cast<size_t>(Aligned(data.size())));
      data += tensor.data;
    }
    std::string file = std::move(out).Take();
    if (!tensors_.empty()) {
      file.resize(static_cast<size_t>(Aligned(file.size())));
    }
    return file + data;
  }

 private:
  uint64_t Aligned(uint64_t size) const {
    return (size + alignment_ - 1) / alignment_ * alignment_;
  }
  void Key(std::string_view key, uint32_t type) {
    entries_.WriteString(key);
    entries_.Write<uint32_t>(type);
    ++entry_count_;
  }
  template <typename T>
  void Value(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      entries_.WriteString(value);
    } else if constexpr (std::is_same_v<T, bool>) {
      entries_.Write<uint8_t>(value ? 1 : 0);
    } else {
      entries_.Write<T>(value);
    }
  }

  uint32_t version_ = 3;
  uint64_t alignment_ = 32;
  uint64_t entry_count_ = 0;
  std::optional<uint64_t> claimed_tensors_;
  std::optional<uint64_t> claimed_entries_;
  ByteWriter entries_;
  std::vector<TensorSpec> tensors_;
};

}  // namespace hexllm::testing

// Element types, their storage size, and shapes. One fact table (dtype.def) for
// checkpoint readers, IR, artifact and kernels. Numbers are stored in
// artifacts: append rows, never reorder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hexllm {

enum class DType : uint8_t {
#define HX_DTYPE(name, text, elems, bytes, gguf) name,
#include "base/dtype.def"
#undef HX_DTYPE
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as in IR text and messages
  uint32_t block_elems;
  uint32_t block_bytes;
  int32_t gguf_type;  // ggml type id, or -1
};

// All rows of dtype.def, in enum order.
std::span<const DTypeInfo> AllDTypes();
const DTypeInfo& GetDTypeInfo(DType dtype);
inline std::string_view DTypeName(DType dtype) {
  return GetDTypeInfo(dtype).name;
}
std::optional<DType> FindDTypeByName(std::string_view name);
std::optional<DType> FindDTypeByGgufType(uint32_t gguf_type);
inline bool IsBlockType(DType dtype) {
  return GetDTypeInfo(dtype).block_elems > 1;
}

// Dimensions, outermost first (row-major; the last axis is contiguous). Empty =
// a scalar.
using Shape = std::vector<int64_t>;

// Product of the dimensions, or nothing when a dimension is negative or the
// product overflows int64.
std::optional<int64_t> NumElements(const Shape& shape);
// Bytes of a dense tensor, or nothing on overflow, a negative dimension, or a
// last axis that is no whole number of blocks.
std::optional<uint64_t> StorageBytes(DType dtype, const Shape& shape);
// "[2,3]".
std::string ShapeToString(const Shape& shape);

}  // namespace hexllm

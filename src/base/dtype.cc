#include "base/dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "base/check.h"

namespace hexllm {
namespace {

constexpr DTypeInfo kDTypes[] = {
#define HX_DTYPE(name, text, elems, bytes, gguf) \
  {DType::name, text, elems, bytes, gguf},
#include "base/dtype.def"
#undef HX_DTYPE
};

}  // namespace

std::span<const DTypeInfo> AllDTypes() { return kDTypes; }

const DTypeInfo& GetDTypeInfo(DType dtype) {
  HX_CHECK(static_cast<size_t>(dtype) < std::size(kDTypes));
  return kDTypes[static_cast<size_t>(dtype)];
}

std::optional<DType> FindDTypeByName(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

std::optional<DType> FindDTypeByGgufType(uint32_t gguf_type) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.gguf_type >= 0 &&
        static_cast<uint32_t>(info.gguf_type) == gguf_type)
      return info.dtype;
  }
  return std::nullopt;
}

std::optional<int64_t> NumElements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count))
      return std::nullopt;
  }
  return count;
}

std::optional<uint64_t> StorageBytes(DType dtype, const Shape& shape) {
  const DTypeInfo& info = GetDTypeInfo(dtype);
  const auto count = NumElements(shape);
  if (!count) return std::nullopt;
  const int64_t row = shape.empty() ? 1 : shape.back();
  if (row % info.block_elems != 0) return std::nullopt;
  return CheckedMul(static_cast<uint64_t>(*count) / info.block_elems,
                    info.block_bytes);
}

std::string ShapeToString(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

}  // namespace hexllm

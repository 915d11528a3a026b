// Typed access to GGUF metadata. The parser is gguf.cc.
#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/quote.h"
#include "checkpoint/gguf.h"

namespace hexllm {
namespace {

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// "u32 7", "string", "array of string", ...
std::string Found(const GgufEntry& entry) {
  if (const auto* array = std::get_if<GgufArray>(&entry.value)) {
    return fmt::format("array of {}", GgufTypeName(array->element_type));
  }
  const std::string_view type = GgufTypeName(entry.type);
  const auto& scalar = std::get<GgufScalar>(entry.value);
  if (const auto* value = std::get_if<int64_t>(&scalar)) {
    return fmt::format("{} {}", type, *value);
  }
  if (const auto* value = std::get_if<uint64_t>(&scalar)) {
    return fmt::format("{} {}", type, *value);
  }
  return std::string(type);
}

Error Mismatch(std::string_view key, std::string_view expected,
               std::string_view found) {
  return Error{ErrorCode::kBadInput,
               fmt::format("metadata key {}: expected {}, found {}",
                           Quoted(key), expected, found)};
}

// What a caller asks for: the words for a message, and the conversion, which
// gives nullopt for other types and for numbers that do not fit.
template <typename T>
struct Wanted {
  std::string_view expected;
  std::optional<T> (*convert)(const GgufEntry& entry);
};

template <typename T>
Result<std::optional<T>> FindAs(const GgufMetadata& metadata,
                                std::string_view key, Wanted<T> wanted) {
  const GgufEntry* entry = metadata.FindEntry(key);
  if (entry == nullptr) return std::optional<T>();
  std::optional<T> value = wanted.convert(*entry);
  if (!value) return Mismatch(key, wanted.expected, Found(*entry));
  return value;
}

template <typename T>
Result<T> GetAs(const GgufMetadata& metadata, std::string_view key,
                Wanted<T> wanted) {
  HX_ASSIGN_OR_RETURN(auto value, FindAs(metadata, key, wanted));
  if (!value) return Mismatch(key, wanted.expected, "nothing");
  return *std::move(value);
}

// A scalar of exactly the alternative T.
template <typename T>
std::optional<T> AsScalar(const GgufEntry& entry) {
  const auto* scalar = std::get_if<GgufScalar>(&entry.value);
  const T* value = scalar == nullptr ? nullptr : std::get_if<T>(scalar);
  if (value == nullptr) return std::nullopt;
  return *value;
}

std::optional<uint64_t> AsUint(const GgufEntry& entry) {
  if (const auto value = AsScalar<int64_t>(entry); value && *value >= 0) {
    return static_cast<uint64_t>(*value);
  }
  return AsScalar<uint64_t>(entry);
}

std::optional<int64_t> ToInt(const GgufScalar& scalar) {
  if (const auto* value = std::get_if<int64_t>(&scalar)) return *value;
  const auto* value = std::get_if<uint64_t>(&scalar);
  if (value == nullptr || *value > static_cast<uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*value);
}

std::optional<float> ToFloat(const GgufScalar& scalar) {
  const auto* value = std::get_if<double>(&scalar);
  if (value == nullptr) return std::nullopt;
  return static_cast<float>(*value);
}

// An array whose elements all convert.
template <typename T, std::optional<T> (*ToElement)(const GgufScalar&)>
std::optional<std::vector<T>> AsArray(const GgufEntry& entry) {
  const auto* array = std::get_if<GgufArray>(&entry.value);
  if (array == nullptr) return std::nullopt;
  std::vector<T> values;
  values.reserve(static_cast<size_t>(array->count));
  for (uint64_t i = 0; i < array->count; ++i) {
    const std::optional<T> value = ToElement(GgufElement(*array, i));
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::optional<std::vector<std::string_view>> AsStringArray(
    const GgufEntry& entry) {
  const auto* array = std::get_if<GgufArray>(&entry.value);
  if (array == nullptr || array->element_type != GgufType::kString) {
    return std::nullopt;
  }
  return array->strings;
}

constexpr Wanted<uint64_t> kUint = {"a whole number >= 0", AsUint};
constexpr Wanted<double> kFloat = {"f32 or f64", AsScalar<double>};
constexpr Wanted<bool> kBool = {"bool", AsScalar<bool>};
constexpr Wanted<std::string_view> kString = {"string",
                                              AsScalar<std::string_view>};
constexpr Wanted<std::vector<std::string_view>> kStringArray = {
    "array of string", AsStringArray};
constexpr Wanted<std::vector<int64_t>> kIntArray = {
    "array of whole numbers below 2^63", AsArray<int64_t, ToInt>};
constexpr Wanted<std::vector<float>> kFloatArray = {"array of f32 or f64",
                                                    AsArray<float, ToFloat>};

}  // namespace

std::string_view GgufTypeName(GgufType type) {
  constexpr std::string_view kNames[] = {
      "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
      "bool", "string", "array", "u64", "i64", "f64"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

GgufScalar GgufElement(const GgufArray& array, uint64_t index) {
  HX_CHECK(index < array.count);
  const auto i = static_cast<size_t>(index);
  const std::byte* data = array.data.data();
  // clang-format off
  switch (array.element_type) {
    case GgufType::kUint8: return uint64_t{Load<uint8_t>(data + i)};
    case GgufType::kInt8: return int64_t{Load<int8_t>(data + i)};
    case GgufType::kUint16: return uint64_t{Load<uint16_t>(data + 2 * i)};
    case GgufType::kInt16: return int64_t{Load<int16_t>(data + 2 * i)};
    case GgufType::kUint32: return uint64_t{Load<uint32_t>(data + 4 * i)};
    case GgufType::kInt32: return int64_t{Load<int32_t>(data + 4 * i)};
    case GgufType::kFloat32: return double{Load<float>(data + 4 * i)};
    case GgufType::kBool: return Load<uint8_t>(data + i) != 0;
    case GgufType::kUint64: return Load<uint64_t>(data + 8 * i);
    case GgufType::kInt64: return Load<int64_t>(data + 8 * i);
    case GgufType::kFloat64: return Load<double>(data + 8 * i);
    case GgufType::kString: return array.strings[i];
    case GgufType::kArray: break;
  }
  // clang-format on
  HX_CHECK(false);  // the parser makes no arrays of arrays
}

GgufMetadata::GgufMetadata(std::vector<GgufEntry> entries)
    : entries_(std::move(entries)) {
  index_.reserve(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    HX_CHECK(index_.emplace(entries_[i].key, i).second);
  }
}

const GgufEntry* GgufMetadata::FindEntry(std::string_view key) const {
  const auto it = index_.find(key);
  return it == index_.end() ? nullptr : &entries_[it->second];
}

Result<uint64_t> GgufMetadata::GetUint(std::string_view key) const {
  return GetAs(*this, key, kUint);
}
Result<double> GgufMetadata::GetFloat(std::string_view key) const {
  return GetAs(*this, key, kFloat);
}
Result<bool> GgufMetadata::GetBool(std::string_view key) const {
  return GetAs(*this, key, kBool);
}
Result<std::string_view> GgufMetadata::GetString(std::string_view key) const {
  return GetAs(*this, key, kString);
}
Result<std::vector<std::string_view>> GgufMetadata::GetStringArray(
    std::string_view key) const {
  return GetAs(*this, key, kStringArray);
}
Result<std::vector<int64_t>> GgufMetadata::GetIntArray(
    std::string_view key) const {
  return GetAs(*this, key, kIntArray);
}
Result<std::vector<float>> GgufMetadata::GetFloatArray(
    std::string_view key) const {
  return GetAs(*this, key, kFloatArray);
}

Result<std::optional<uint64_t>> GgufMetadata::FindUint(
    std::string_view key) const {
  return FindAs(*this, key, kUint);
}
Result<std::optional<double>> GgufMetadata::FindFloat(
    std::string_view key) const {
  return FindAs(*this, key, kFloat);
}
Result<std::optional<bool>> GgufMetadata::FindBool(std::string_view key) const {
  return FindAs(*this, key, kBool);
}
Result<std::optional<std::string_view>> GgufMetadata::FindString(
    std::string_view key) const {
  return FindAs(*this, key, kString);
}
Result<std::optional<std::vector<std::string_view>>>
GgufMetadata::FindStringArray(std::string_view key) const {
  return FindAs(*this, key, kStringArray);
}
Result<std::optional<std::vector<int64_t>>> GgufMetadata::FindIntArray(
    std::string_view key) const {
  return FindAs(*this, key, kIntArray);
}
Result<std::optional<std::vector<float>>> GgufMetadata::FindFloatArray(
    std::string_view key) const {
  return FindAs(*this, key, kFloatArray);
}

}  // namespace hexllm

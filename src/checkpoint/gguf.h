// GGUF parser: a span of bytes in, typed metadata and tensor views out.
// Used by Checkpoint and by models/ (metadata only). Knows nothing of
// architectures and reads no files.
// Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2
// and 3, little-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "checkpoint/tensor_view.h"

namespace hexllm {

// Value types, with the numbers of the file format.
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// "u32", "string", ... as in messages and in the output of `inspect`.
std::string_view GgufTypeName(GgufType type);

// An array value. Strings are views; other elements are packed in `data`, not
// aligned. Views into the file.
struct GgufArray {
  GgufType element_type = GgufType::kUint8;
  uint64_t count = 0;
  ByteSpan data;
  std::vector<std::string_view> strings;
};

// One number, bool or string of an array or entry, widened.
using GgufScalar =
    std::variant<bool, uint64_t, int64_t, double, std::string_view>;

// Element `index` (< count, checked) of `array`.
GgufScalar GgufElement(const GgufArray& array, uint64_t index);

// One metadata entry. `type` is kArray exactly when `value` holds a GgufArray.
struct GgufEntry {
  std::string_view key;
  GgufType type = GgufType::kUint8;
  std::variant<GgufScalar, GgufArray> value;
};

// The metadata of one file. Holds views: the file must outlive it. Immutable
// and therefore thread-safe.
//
// GetX: kBadInput naming key, expected and found type when the key is missing
// or has another type. FindX: the same, but a missing key gives nullopt.
// Integers may be stored in any integer width; an Int or Uint that does not fit
// is kBadInput. A float may be f32 or f64; integers are no floats.
class GgufMetadata {
 public:
  GgufMetadata() = default;
  // Takes the entries of a file in file order; keys must be unique (checked).
  explicit GgufMetadata(std::vector<GgufEntry> entries);

  // All entries in file order.
  std::span<const GgufEntry> entries() const { return entries_; }
  bool Has(std::string_view key) const { return FindEntry(key) != nullptr; }
  // Null when missing.
  const GgufEntry* FindEntry(std::string_view key) const;

  Result<uint64_t> GetUint(std::string_view key) const;
  Result<double> GetFloat(std::string_view key) const;
  Result<bool> GetBool(std::string_view key) const;
  Result<std::string_view> GetString(std::string_view key) const;
  Result<std::vector<std::string_view>> GetStringArray(
      std::string_view key) const;
  Result<std::vector<int64_t>> GetIntArray(std::string_view key) const;
  Result<std::vector<float>> GetFloatArray(std::string_view key) const;

  Result<std::optional<uint64_t>> FindUint(std::string_view key) const;
  Result<std::optional<double>> FindFloat(std::string_view key) const;
  Result<std::optional<bool>> FindBool(std::string_view key) const;
  Result<std::optional<std::string_view>> FindString(
      std::string_view key) const;
  Result<std::optional<std::vector<std::string_view>>> FindStringArray(
      std::string_view key) const;
  Result<std::optional<std::vector<int64_t>>> FindIntArray(
      std::string_view key) const;
  Result<std::optional<std::vector<float>>> FindFloatArray(
      std::string_view key) const;

 private:
  std::vector<GgufEntry> entries_;
  std::unordered_map<std::string_view, size_t> index_;  // key -> entry
};

// A parsed file.
struct GgufFile {
  uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<TensorView> tensors;  // sorted by name, unique
};

// Parses and validates a whole file: every tensor lies inside it, aligned to
// general.alignment, and none overlap. kBadInput for damage; kUnsupported for
// version 1, big-endian files and tensor types outside dtype.def (named with
// the tensor). Messages do not name the file: the caller adds it.
Result<GgufFile> ParseGguf(ByteSpan file);

}  // namespace hexllm

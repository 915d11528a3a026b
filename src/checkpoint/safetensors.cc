#include "checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/quote.h"

namespace hexllm {
namespace {

struct NamedDType {
  std::string_view name;
  DType dtype;
};

constexpr NamedDType kDTypeNames[] = {
    {"F64", DType::kF64},   {"F32", DType::kF32}, {"F16", DType::kF16},
    {"BF16", DType::kBF16}, {"I64", DType::kI64}, {"I32", DType::kI32},
    {"I16", DType::kI16},   {"I8", DType::kI8},   {"U64", DType::kU64},
    {"U32", DType::kU32},   {"U16", DType::kU16}, {"U8", DType::kU8},
    {"BOOL", DType::kBool},
};

// A tensor of the header, before its bytes are known to be there.
struct Entry {
  TensorView tensor;
  uint64_t begin = 0;  // in the data section
  uint64_t end = 0;
};

Error BadInput(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

Result<DType> ParseDType(const Json& json) {
  HX_ASSIGN_OR_RETURN(const std::string text, GetString(json, "dtype"));
  for (const NamedDType& row : kDTypeNames) {
    if (row.name == text) return row.dtype;
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("element type {} is not supported (supported: F64 "
                           "F32 F16 BF16, BOOL, and I and U of 8 to 64 bits)",
                           Quoted(text))};
}

// The array `key` of whole numbers >= 0.
Result<std::vector<int64_t>> ParseSizes(const Json& json,
                                        std::string_view key) {
  const Json* array = FindMember(json, key);
  if (array == nullptr || !array->is_array()) {
    return BadInput(
        fmt::format("'{}': expected an array of sizes, found {}", key,
                    array == nullptr ? "nothing" : JsonTypeName(*array)));
  }
  std::vector<int64_t> sizes;
  sizes.reserve(array->size());
  for (const Json& item : *array) {
    // Negative numbers are the only ones that are not stored unsigned.
    if (!item.is_number_unsigned() ||
        item.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
      return BadInput(
          fmt::format("'{}': expected whole numbers from 0 to "
                      "2^63 - 1, found {}",
                      key, Printable(DumpJson(item))));
    }
    sizes.push_back(item.get<int64_t>());
  }
  return sizes;
}

Result<Shape> ParseShape(const Json& json) {
  HX_ASSIGN_OR_RETURN(Shape shape, ParseSizes(json, "shape"));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    return BadInput(
        fmt::format("shape: expected dimensions of at least 1, found {}",
                    Printable(ShapeToString(shape))));
  }
  return shape;
}

// The member `name` of the header.
Result<Entry> ParseEntry(const std::string& name, const Json& json) {
  if (!json.is_object()) {
    return BadInput(
        fmt::format("expected an object, found {}", JsonTypeName(json)));
  }
  Entry entry;
  entry.tensor.name = name;
  HX_ASSIGN_OR_RETURN(entry.tensor.dtype, ParseDType(json));
  HX_ASSIGN_OR_RETURN(entry.tensor.shape, ParseShape(json));
  HX_ASSIGN_OR_RETURN(const auto offsets, ParseSizes(json, "data_offsets"));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    return BadInput(
        fmt::format("'data_offsets': expected [begin, end] with begin <= end, "
                    "found {}",
                    Printable(ShapeToString(offsets))));
  }
  entry.begin = static_cast<uint64_t>(offsets[0]);
  entry.end = static_cast<uint64_t>(offsets[1]);
  const auto bytes = StorageBytes(entry.tensor.dtype, entry.tensor.shape);
  if (!bytes) {
    return BadInput(
        fmt::format("shape: expected a size that fits 64 bits, found {} of {}",
                    Printable(ShapeToString(entry.tensor.shape)),
                    DTypeName(entry.tensor.dtype)));
  }
  if (*bytes != entry.end - entry.begin) {
    return BadInput(fmt::format(
        "'data_offsets': expected {} bytes for {} {}, found {}", *bytes,
        DTypeName(entry.tensor.dtype),
        Printable(ShapeToString(entry.tensor.shape)), entry.end - entry.begin));
  }
  return entry;
}

std::string TensorLabel(std::string_view name) {
  return fmt::format("tensor {}", Quoted(name));
}

Status ParseMetadata(const Json& json, SafetensorsFile& file) {
  if (!json.is_object()) {
    return BadInput(fmt::format("'__metadata__': expected an object, found {}",
                                JsonTypeName(json)));
  }
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      return BadInput(
          fmt::format("'__metadata__': {}: expected a string, found {}",
                      Quoted(key), JsonTypeName(value)));
    }
    file.metadata.emplace(key, value.get<std::string>());
  }
  return OkStatus();
}

// The header's JSON, and what follows it.
struct Sections {
  std::string_view header;
  ByteSpan data;
};

Result<Sections> SplitSections(ByteSpan file) {
  ByteReader reader(file);
  auto length = reader.Read<uint64_t>();
  if (!length.ok()) {
    return BadInput(
        fmt::format("expected a safetensors file of at least 8 bytes, found {}",
                    file.size()));
  }
  if (*length > kMaxSafetensorsHeader || *length > reader.remaining()) {
    return BadInput(fmt::format(
        "header length: expected at most {} bytes (file of {} bytes), found {} "
        "(truncated, or no safetensors file)",
        std::min<uint64_t>(reader.remaining(), kMaxSafetensorsHeader),
        file.size(), *length));
  }
  HX_ASSIGN_OR_RETURN(const ByteSpan header, reader.ReadBytes(*length));
  if (header.empty() || AsText(header)[0] != '{') {
    return BadInput("header: expected JSON that starts with '{'");
  }
  HX_ASSIGN_OR_RETURN(const ByteSpan data,
                      reader.ReadBytes(reader.remaining()));
  return Sections{AsText(header), data};
}

// Gives each tensor its bytes. Sorted by offset, every tensor must begin where
// the one before it ends, and the last end where the data ends.
Status PlaceTensors(std::vector<Entry>& entries, ByteSpan data) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  std::string after = "the data section starts";
  for (Entry& entry : entries) {
    if (entry.begin != end) {
      return BadInput(fmt::format(
          "{}: expected its data to begin at byte {}, where {}; found {} ({})",
          TensorLabel(entry.tensor.name), end, after, entry.begin,
          entry.begin < end ? "overlap" : "hole"));
    }
    const auto bytes = Slice(data, entry.begin, entry.end - entry.begin);
    if (!bytes) {
      return BadInput(fmt::format(
          "{}: expected its data to end within the {} bytes of the data "
          "section, found end {} (truncated file?)",
          TensorLabel(entry.tensor.name), data.size(), entry.end));
    }
    entry.tensor.data = *bytes;
    end = entry.end;
    after = fmt::format("{} ends", TensorLabel(entry.tensor.name));
  }
  if (end != data.size()) {
    return BadInput(
        fmt::format("data section: expected {} bytes, where {}; found {}", end,
                    after, data.size()));
  }
  return OkStatus();
}

// No separators and no "..": such a name cannot leave the checkpoint's folder.
bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) ==
             std::string_view::npos;
}

}  // namespace

Result<SafetensorsFile> ParseSafetensors(ByteSpan file) {
  HX_ASSIGN_OR_RETURN(const Sections sections, SplitSections(file));
  auto header = ParseJson(sections.header);
  if (!header.ok()) return std::move(header).error().With("header");

  SafetensorsFile out;
  std::vector<Entry> entries;
  for (const auto& [name, json] : header->items()) {
    if (name == "__metadata__") {
      HX_RETURN_IF_ERROR(ParseMetadata(json, out));
      continue;
    }
    auto entry = ParseEntry(name, json);
    if (!entry.ok()) return std::move(entry).error().With(TensorLabel(name));
    entries.push_back(*std::move(entry));
  }
  HX_RETURN_IF_ERROR(PlaceTensors(entries, sections.data));
  for (Entry& entry : entries) out.tensors.push_back(std::move(entry.tensor));
  std::sort(
      out.tensors.begin(), out.tensors.end(),
      [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  return out;
}

Result<SafetensorsIndex> ParseSafetensorsIndex(std::string_view json) {
  HX_ASSIGN_OR_RETURN(const Json root, ParseJson(json));
  const Json* map = FindMember(root, "weight_map");
  if (map == nullptr || !map->is_object()) {
    return BadInput(
        fmt::format("'weight_map': expected an object, found {}",
                    map == nullptr ? "nothing" : JsonTypeName(*map)));
  }
  SafetensorsIndex index;
  std::set<std::string> shards;
  for (const auto& [name, value] : map->items()) {
    if (!value.is_string()) {
      return BadInput(fmt::format("{}: expected a shard's name, found {}",
                                  TensorLabel(name), JsonTypeName(value)));
    }
    const auto& shard = value.get_ref<const std::string&>();
    if (!IsPlainFileName(shard)) {
      return BadInput(
          fmt::format("{}: expected a plain file name for its shard, found {}",
                      TensorLabel(name), Quoted(shard)));
    }
    index.weight_map.emplace(name, shard);
    shards.insert(shard);
  }
  index.shards.assign(shards.begin(), shards.end());
  return index;
}

}  // namespace hexllm

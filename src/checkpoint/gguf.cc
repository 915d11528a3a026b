#include "checkpoint/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/quote.h"

namespace hexllm {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint32_t kMaxDims = 4;
// The least bytes of an entry: key length, type, one byte of value.
constexpr uint64_t kMinEntryBytes = 8 + 4 + 1;
// The least bytes of a tensor's record: name length, dimension count, one
// dimension, type, offset.
constexpr uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;

// Types of ggml that dtype.def lacks, for messages. Ids as in ggml.h.
struct GgmlType {
  uint32_t id;
  std::string_view name;
};
constexpr GgmlType kOtherGgmlTypes[] = {
    {4, "Q4_2"},        {5, "Q4_3"},        {9, "Q8_1"},
    {15, "Q8_K"},       {16, "IQ2_XXS"},    {17, "IQ2_XS"},
    {18, "IQ3_XXS"},    {19, "IQ1_S"},      {20, "IQ4_NL"},
    {21, "IQ3_S"},      {22, "IQ2_S"},      {23, "IQ4_XS"},
    {29, "IQ1_M"},      {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"},   {34, "TQ1_0"},      {35, "TQ2_0"},
    {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"},
    {39, "MXFP4"},      {40, "NVFP4"},
};

Error BadInput(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

struct Header {
  uint32_t version = 0;
  uint64_t tensors = 0;
  uint64_t entries = 0;
};

Result<Header> ParseHeader(ByteReader& reader) {
  HX_ASSIGN_OR_RETURN(const ByteSpan magic, reader.ReadBytes(kMagic.size()));
  if (AsText(magic) != kMagic) {
    return BadInput(
        fmt::format("expected a GGUF file that starts with 'GGUF', "
                    "found {}",
                    Quoted(AsText(magic))));
  }
  Header header;
  HX_ASSIGN_OR_RETURN(header.version, reader.Read<uint32_t>());
  if (header.version == 1) {
    return Error{ErrorCode::kUnsupported,
                 "GGUF version 1 is not supported (supported: 2 and 3); "
                 "convert the model again with a current converter"};
  }
  // A small number read in the wrong byte order.
  if (header.version != 0 && (header.version & 0xffff) == 0) {
    return Error{ErrorCode::kUnsupported,
                 "big-endian GGUF files are not supported; convert it to "
                 "little-endian (gguf_convert_endian.py)"};
  }
  if (header.version != 2 && header.version != 3) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("GGUF version {} is not supported (supported: 2 "
                             "and 3)",
                             header.version)};
  }
  HX_ASSIGN_OR_RETURN(header.tensors, reader.Read<uint64_t>());
  HX_ASSIGN_OR_RETURN(header.entries, reader.Read<uint64_t>());
  return header;
}

// Refuses counts that the rest of the file cannot hold, before memory is
// reserved for them.
Status CheckCount(std::string_view what, uint64_t count, uint64_t most) {
  if (count <= most) return OkStatus();
  return BadInput(
      fmt::format("{}: expected at most {} in a file of this size, found {}",
                  what, most, count));
}

// Bytes of a packed element; 0 for strings and arrays.
uint64_t ScalarBytes(GgufType type) {
  constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kBytes[static_cast<size_t>(type)];
}

Result<GgufType> ParseType(ByteReader& reader) {
  HX_ASSIGN_OR_RETURN(const auto type, reader.Read<uint32_t>());
  if (type > static_cast<uint32_t>(GgufType::kFloat64)) {
    return BadInput(
        fmt::format("value type: expected 0 to 12, found {}", type));
  }
  return static_cast<GgufType>(type);
}

// `count` values of `type`, which is not kArray.
Result<GgufArray> ParseValues(ByteReader& reader, GgufType type,
                              uint64_t count) {
  GgufArray array;
  array.element_type = type;
  array.count = count;
  if (type == GgufType::kString) {
    HX_RETURN_IF_ERROR(
        CheckCount("strings", count, reader.remaining() / sizeof(uint64_t)));
    array.strings.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) {
      HX_ASSIGN_OR_RETURN(const std::string_view text, reader.ReadString());
      array.strings.push_back(text);
    }
    return array;
  }
  const uint64_t element_bytes = ScalarBytes(type);
  HX_RETURN_IF_ERROR(
      CheckCount("elements", count, reader.remaining() / element_bytes));
  HX_ASSIGN_OR_RETURN(array.data, reader.ReadBytes(count * element_bytes));
  return array;
}

Result<GgufArray> ParseArray(ByteReader& reader) {
  HX_ASSIGN_OR_RETURN(const GgufType type, ParseType(reader));
  if (type == GgufType::kArray) {
    return Error{ErrorCode::kUnsupported, "arrays of arrays are not supported"};
  }
  HX_ASSIGN_OR_RETURN(const auto count, reader.Read<uint64_t>());
  return ParseValues(reader, type, count);
}

// Type and value of `entry`, whose key has been read.
Status ParseValue(ByteReader& reader, GgufEntry& entry) {
  HX_ASSIGN_OR_RETURN(entry.type, ParseType(reader));
  if (entry.type == GgufType::kArray) {
    HX_ASSIGN_OR_RETURN(entry.value, ParseArray(reader));
    return OkStatus();
  }
  HX_ASSIGN_OR_RETURN(const GgufArray one, ParseValues(reader, entry.type, 1));
  entry.value = GgufElement(one, 0);
  return OkStatus();
}

Result<GgufMetadata> ParseMetadata(ByteReader& reader, uint64_t count) {
  HX_RETURN_IF_ERROR(CheckCount("metadata entries", count,
                                reader.remaining() / kMinEntryBytes));
  std::vector<GgufEntry> entries;
  entries.reserve(static_cast<size_t>(count));
  std::unordered_set<std::string_view> keys;
  for (uint64_t i = 0; i < count; ++i) {
    GgufEntry entry;
    auto key = reader.ReadString();
    if (!key.ok()) {
      return std::move(key).error().With(fmt::format("metadata entry {}", i));
    }
    entry.key = *key;
    const auto label = [&] {
      return fmt::format("metadata key {}", Quoted(entry.key));
    };
    if (!keys.insert(entry.key).second) {
      return BadInput(label() + ": given twice");
    }
    if (Status status = ParseValue(reader, entry); !status.ok()) {
      return std::move(status).error().With(label());
    }
    entries.push_back(std::move(entry));
  }
  return GgufMetadata(std::move(entries));
}

// A tensor's record, before its bytes are known to be there.
struct Record {
  TensorView tensor;
  uint64_t offset = 0;  // in the data section
  uint64_t bytes = 0;
  uint64_t end() const { return offset + bytes; }
};

std::string TensorLabel(std::string_view name) {
  return fmt::format("tensor {}", Quoted(name));
}

Error UnsupportedType(uint32_t id) {
  const auto* row =
      std::find_if(std::begin(kOtherGgmlTypes), std::end(kOtherGgmlTypes),
                   [id](const GgmlType& type) { return type.id == id; });
  const std::string name = row == std::end(kOtherGgmlTypes)
                               ? fmt::format("number {}", id)
                               : std::string(row->name);
  return Error{ErrorCode::kUnsupported,
               fmt::format("ggml type {} is not supported (supported: F32 F16 "
                           "BF16 F64, I8 to I64, Q4_0 Q4_1 Q5_0 Q5_1 Q8_0, "
                           "Q2_K to Q6_K)",
                           name)};
}

// The dimensions, stored innermost first, turned round.
Result<Shape> ParseShape(ByteReader& reader) {
  HX_ASSIGN_OR_RETURN(const auto rank, reader.Read<uint32_t>());
  if (rank < 1 || rank > kMaxDims) {
    return BadInput(
        fmt::format("expected 1 to {} dimensions, found {}", kMaxDims, rank));
  }
  Shape shape(rank);
  for (auto dim = shape.rbegin(); dim != shape.rend(); ++dim) {
    HX_ASSIGN_OR_RETURN(*dim, reader.Read<int64_t>());
  }
  if (std::any_of(shape.begin(), shape.end(),
                  [](int64_t dim) { return dim < 1; })) {
    return BadInput(
        fmt::format("shape: expected dimensions from 1 to 2^63 - 1, found {}",
                    ShapeToString(shape)));
  }
  return shape;
}

Status ParseRecordBody(ByteReader& reader, Record& record) {
  TensorView& tensor = record.tensor;
  HX_ASSIGN_OR_RETURN(tensor.shape, ParseShape(reader));
  HX_ASSIGN_OR_RETURN(const auto type, reader.Read<uint32_t>());
  const auto dtype = FindDTypeByGgufType(type);
  if (!dtype) return UnsupportedType(type);
  tensor.dtype = *dtype;
  HX_ASSIGN_OR_RETURN(record.offset, reader.Read<uint64_t>());
  const uint32_t block = GetDTypeInfo(tensor.dtype).block_elems;
  if (tensor.shape.back() % block != 0) {
    return BadInput(fmt::format(
        "shape {}: expected rows of a multiple of {} elements for {}, found {}",
        ShapeToString(tensor.shape), block, DTypeName(tensor.dtype),
        tensor.shape.back()));
  }
  const auto bytes = StorageBytes(tensor.dtype, tensor.shape);
  if (!bytes || !CheckedAdd(record.offset, *bytes)) {
    return BadInput(fmt::format(
        "shape {} of {} at offset {}: its size "
        "overflows",
        ShapeToString(tensor.shape), DTypeName(tensor.dtype), record.offset));
  }
  record.bytes = *bytes;
  return OkStatus();
}

Result<std::vector<Record>> ParseRecords(ByteReader& reader, uint64_t count) {
  HX_RETURN_IF_ERROR(
      CheckCount("tensors", count, reader.remaining() / kMinTensorBytes));
  std::vector<Record> records;
  records.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    Record record;
    auto name = reader.ReadString();
    if (!name.ok()) {
      return std::move(name).error().With(fmt::format("tensor {}", i));
    }
    record.tensor.name = *name;
    if (Status status = ParseRecordBody(reader, record); !status.ok()) {
      return std::move(status).error().With(TensorLabel(*name));
    }
    records.push_back(std::move(record));
  }
  return records;
}

Result<uint64_t> ParseAlignment(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  HX_ASSIGN_OR_RETURN(const auto found, metadata.FindUint(kKey));
  const uint64_t alignment = found.value_or(kDefaultAlignment);
  // The specification asks for a multiple of 8; files use powers of two.
  if (alignment < 8 || alignment > (uint64_t{1} << 30) ||
      (alignment & (alignment - 1)) != 0) {
    return BadInput(
        fmt::format("metadata key '{}': expected a power of two "
                    "from 8 to 2^30, found {}",
                    kKey, alignment));
  }
  return alignment;
}

// The data section: from the first multiple of `alignment` after the header.
Result<ByteSpan> DataSection(ByteSpan file, uint64_t header_end,
                             uint64_t alignment) {
  const auto start = CheckedAlignUp(header_end, alignment);
  if (!start || *start > file.size()) {
    return BadInput(
        fmt::format("truncated file: expected tensor data from "
                    "byte {}, found the end at {}",
                    start.value_or(UINT64_MAX), file.size()));
  }
  return file.subspan(static_cast<size_t>(*start));
}

// Gives each tensor its bytes; refuses those that are outside the data section,
// not aligned, or overlap. Gaps are allowed.
Status PlaceTensors(std::vector<Record>& records, ByteSpan data,
                    uint64_t alignment) {
  std::sort(
      records.begin(), records.end(),
      [](const Record& a, const Record& b) { return a.offset < b.offset; });
  const Record* previous = nullptr;
  for (Record& record : records) {
    const std::string label = TensorLabel(record.tensor.name);
    if (record.offset % alignment != 0) {
      return BadInput(
          fmt::format("{}: expected an offset that is a multiple of {}, "
                      "found {}",
                      label, alignment, record.offset));
    }
    if (previous != nullptr && record.offset < previous->end()) {
      return BadInput(
          fmt::format("{}: expected its data at byte {} or later, where {} "
                      "ends; found {} (overlap)",
                      label, previous->end(),
                      TensorLabel(previous->tensor.name), record.offset));
    }
    const auto bytes = Slice(data, record.offset, record.bytes);
    if (!bytes) {
      return BadInput(
          fmt::format("{}: expected its data to end within the {} bytes of "
                      "the data section, found end {} (truncated file?)",
                      label, data.size(), record.end()));
    }
    record.tensor.data = *bytes;
    previous = &record;
  }
  return OkStatus();
}

// The tensors of `records`, sorted by name; refuses a name given twice.
Result<std::vector<TensorView>> SortByName(std::vector<Record> records) {
  std::vector<TensorView> tensors;
  tensors.reserve(records.size());
  for (Record& record : records) tensors.push_back(std::move(record.tensor));
  std::sort(
      tensors.begin(), tensors.end(),
      [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(tensors.begin(), tensors.end(),
                         [](const TensorView& a, const TensorView& b) {
                           return a.name == b.name;
                         });
  if (twice != tensors.end()) {
    return BadInput(TensorLabel(twice->name) + ": given twice");
  }
  return tensors;
}

}  // namespace

Result<GgufFile> ParseGguf(ByteSpan file) {
  ByteReader reader(file);
  GgufFile out;
  HX_ASSIGN_OR_RETURN(const Header header, ParseHeader(reader));
  out.version = header.version;
  HX_ASSIGN_OR_RETURN(out.metadata, ParseMetadata(reader, header.entries));
  HX_ASSIGN_OR_RETURN(auto records, ParseRecords(reader, header.tensors));
  if (records.empty()) return out;  // a vocabulary alone
  HX_ASSIGN_OR_RETURN(const uint64_t alignment, ParseAlignment(out.metadata));
  HX_ASSIGN_OR_RETURN(const ByteSpan data,
                      DataSection(file, reader.offset(), alignment));
  HX_RETURN_IF_ERROR(PlaceTensors(records, data, alignment));
  HX_ASSIGN_OR_RETURN(out.tensors, SortByName(std::move(records)));
  return out;
}

}  // namespace hexllm

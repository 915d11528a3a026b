#include "checkpoint/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/quote.h"

namespace hexllm {
namespace {

constexpr uint64_t kShownElements = 8;

// --- JSON: strings in full; DumpJson escapes them.

Json ScalarToJson(const GgufScalar& scalar) {
  return std::visit([](const auto& value) { return Json(value); }, scalar);
}

Json EntryToJson(const GgufEntry& entry) {
  Json out = {{"key", entry.key}};
  if (const auto* scalar = std::get_if<GgufScalar>(&entry.value)) {
    out["type"] = GgufTypeName(entry.type);
    out["value"] = ScalarToJson(*scalar);
    return out;
  }
  const auto& array = std::get<GgufArray>(entry.value);
  out["type"] = fmt::format("array of {}", GgufTypeName(array.element_type));
  out["count"] = array.count;
  Json& first = out["first"] = Json::array();
  for (uint64_t i = 0; i < std::min(array.count, kShownElements); ++i) {
    first.push_back(ScalarToJson(GgufElement(array, i)));
  }
  return out;
}

Json MetadataToJson(const Checkpoint& checkpoint) {
  Json out = Json::array();
  if (const GgufMetadata* gguf = checkpoint.gguf()) {
    for (const GgufEntry& entry : gguf->entries()) {
      out.push_back(EntryToJson(entry));
    }
  }
  for (const Checkpoint::File& file : checkpoint.files()) {
    for (const auto& [key, value] : file.metadata) {
      out.push_back({{"key", key}, {"type", "string"}, {"value", value}});
    }
  }
  return out;
}

// --- Text: strings cut and escaped.

std::string ScalarText(GgufType type, const GgufScalar& scalar) {
  if (const auto* text = std::get_if<std::string_view>(&scalar)) {
    return fmt::format("\"{}\"", Printable(*text, 60));
  }
  if (type == GgufType::kFloat32) {
    // As a float: the fewest digits that name it.
    return fmt::format("{}", static_cast<float>(std::get<double>(scalar)));
  }
  if (const auto* value = std::get_if<bool>(&scalar)) {
    return *value ? "true" : "false";
  }
  if (const auto* value = std::get_if<uint64_t>(&scalar)) {
    return std::to_string(*value);
  }
  if (const auto* value = std::get_if<int64_t>(&scalar)) {
    return std::to_string(*value);
  }
  return fmt::format("{}", std::get<double>(scalar));
}

std::string ValueText(const GgufEntry& entry) {
  if (const auto* scalar = std::get_if<GgufScalar>(&entry.value)) {
    return fmt::format("{} {}", GgufTypeName(entry.type),
                       ScalarText(entry.type, *scalar));
  }
  const auto& array = std::get<GgufArray>(entry.value);
  std::string out = fmt::format("array of {} {} [", array.count,
                                GgufTypeName(array.element_type));
  for (uint64_t i = 0; i < std::min(array.count, kShownElements); ++i) {
    if (i > 0) out += ", ";
    out += ScalarText(array.element_type, GgufElement(array, i));
  }
  return out + (array.count > kShownElements ? ", ...]" : "]");
}

std::string MetadataText(const Checkpoint& checkpoint) {
  std::string out = "metadata\n";
  if (const GgufMetadata* gguf = checkpoint.gguf()) {
    for (const GgufEntry& entry : gguf->entries()) {
      out += fmt::format("  {} = {}\n", Printable(entry.key), ValueText(entry));
    }
  }
  for (const Checkpoint::File& file : checkpoint.files()) {
    for (const auto& [key, value] : file.metadata) {
      out += fmt::format("  {} = string \"{}\"\n", Printable(key),
                         Printable(value, 60));
    }
  }
  return out;
}

// One line per tensor, in columns as wide as their widest cell.
std::string TensorTable(std::span<const TensorView> tensors) {
  size_t name_width = 4;
  size_t shape_width = 5;
  for (const TensorView& tensor : tensors) {
    name_width = std::max(name_width, Printable(tensor.name).size());
    shape_width = std::max(shape_width, ShapeToString(tensor.shape).size());
  }
  std::string out = fmt::format("  {:<{}}  dtype  {:<{}}  {:>12}\n", "name",
                                name_width, "shape", shape_width, "bytes");
  for (const TensorView& tensor : tensors) {
    out += fmt::format("  {:<{}}  {:<5}  {:<{}}  {:>12}\n",
                       Printable(tensor.name), name_width,
                       DTypeName(tensor.dtype), ShapeToString(tensor.shape),
                       shape_width, tensor.data.size());
  }
  return out;
}

struct Totals {
  uint64_t elements = 0;
  uint64_t bytes = 0;
};

// Cannot overflow: the tensors lie side by side in mapped files.
Totals Sum(std::span<const TensorView> tensors) {
  Totals totals;
  for (const TensorView& tensor : tensors) {
    totals.elements += static_cast<uint64_t>(*NumElements(tensor.shape));
    totals.bytes += tensor.data.size();
  }
  return totals;
}

}  // namespace

std::string DescribeCheckpoint(const Checkpoint& checkpoint) {
  std::string out =
      fmt::format("format: {}\n", CheckpointFormatName(checkpoint.format()));
  for (const Checkpoint::File& file : checkpoint.files()) {
    out += fmt::format("file: {}, {} bytes\n", Printable(file.mapping.path()),
                       file.mapping.bytes().size());
  }
  out += MetadataText(checkpoint);
  const std::span<const TensorView> tensors = checkpoint.tensors();
  out += "tensors\n" + TensorTable(tensors);
  const Totals totals = Sum(tensors);
  return out + fmt::format("total: {} tensors, {} elements, {} bytes\n",
                           tensors.size(), totals.elements, totals.bytes);
}

Json CheckpointToJson(const Checkpoint& checkpoint) {
  Json files = Json::array();
  for (const Checkpoint::File& file : checkpoint.files()) {
    files.push_back({{"path", file.mapping.path()},
                     {"bytes", file.mapping.bytes().size()}});
  }
  Json tensors = Json::array();
  for (const TensorView& tensor : checkpoint.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", DTypeName(tensor.dtype)},
                       {"shape", tensor.shape},
                       {"bytes", tensor.data.size()}});
  }
  const Totals totals = Sum(checkpoint.tensors());
  return {{"format", CheckpointFormatName(checkpoint.format())},
          {"files", std::move(files)},
          {"metadata", MetadataToJson(checkpoint)},
          {"tensors", std::move(tensors)},
          {"total",
           {{"tensors", checkpoint.tensors().size()},
            {"elements", totals.elements},
            {"bytes", totals.bytes}}}};
}

}  // namespace hexllm

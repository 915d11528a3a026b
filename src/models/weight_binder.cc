#include "models/weight_binder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/dequantize.h"

namespace hexllm::models {
namespace {

// Inserts into a sorted vector; the position of an equal element when there is
// one.
template <typename T>
void InsertSorted(std::vector<T>& items, T item) {
  const auto at = std::lower_bound(items.begin(), items.end(), item);
  if (at == items.end() || *at != item) items.insert(at, std::move(item));
}

// Splits "model.layers.12.mlp.up_proj.weight" into
// {"model.layers.{}.mlp.up_proj", "12", ".weight"}.
struct NameParts {
  std::string pattern;
  std::string layer;
  std::string_view suffix;
};

NameParts SplitName(std::string_view name) {
  NameParts parts;
  const size_t dot = name.rfind('.');
  parts.suffix =
      dot == std::string_view::npos ? std::string_view{} : name.substr(dot);
  std::string_view stem = name.substr(0, dot);
  constexpr std::string_view kLayers = "model.layers.";
  if (!stem.starts_with(kLayers)) {
    parts.pattern = stem;
    return parts;
  }
  const std::string_view rest = stem.substr(kLayers.size());
  const size_t end = rest.find('.');
  parts.layer = rest.substr(0, end);
  parts.pattern =
      fmt::format("{}{{}}{}", kLayers,
                  end == std::string_view::npos ? "" : rest.substr(end));
  return parts;
}

// Row i of each head in half-split order, as a stored row in interleaved order:
// pairs (2i, 2i+1) become (i, i + D/2).
std::vector<int64_t> InterleavedToHalfSplit(int64_t rows, int64_t head_dim) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  const int64_t half = head_dim / 2;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t head = row / head_dim;
    const int64_t i = row % head_dim;
    order[static_cast<size_t>(row)] =
        head * head_dim + (i < half ? 2 * i : 2 * (i - half) + 1);
  }
  return order;
}

// A bias has one row in the IR's sense, so its elements are put in order by
// value.
void ReorderElements(ir::Constant& constant,
                     const std::vector<int64_t>& order) {
  std::vector<float> values(order.size());
  std::vector<float> ordered(order.size());
  DequantizeRow(constant.type.dtype, constant.bytes, values);
  for (size_t i = 0; i < order.size(); ++i)
    ordered[i] = values[static_cast<size_t>(order[i])];
  const auto bytes = std::as_bytes(std::span(ordered));
  constant.owned = std::make_shared<const std::string>(AsText(bytes));
  constant.bytes = AsBytes(*constant.owned);
  constant.type.dtype = DType::kF32;
}

}  // namespace

WeightBinder::WeightBinder(const ModelSource& source,
                           ir::ConstantStore& constants)
    : source_(source), constants_(constants) {}

std::optional<std::string> WeightBinder::StoredName(
    std::string_view hf_name) const {
  if (source_.stored_names.empty()) return std::string(hf_name);
  const NameParts parts = SplitName(hf_name);
  for (const TensorAlias& alias : source_.stored_names) {
    if (alias.hf != parts.pattern) continue;
    std::string name(alias.stored);
    if (const size_t hole = name.find("{}"); hole != std::string::npos)
      name.replace(hole, 2, parts.layer);
    return name + std::string(parts.suffix);
  }
  return std::nullopt;
}

const TensorView* WeightBinder::Find(std::string_view hf_name) const {
  const auto stored = StoredName(hf_name);
  return stored ? source_.checkpoint->Find(*stored) : nullptr;
}

bool WeightBinder::Has(std::string_view hf_name) const {
  return Find(hf_name) != nullptr;
}

void WeightBinder::Ignore(std::string_view hf_name) {
  if (auto stored = StoredName(hf_name))
    InsertSorted(known_, std::move(*stored));
}

Result<ir::ConstantId> WeightBinder::Bind(const WeightRequest& request) {
  const auto at = std::lower_bound(
      bound_.begin(), bound_.end(), request.name,
      [](const auto& a, const auto& b) { return a.first < b; });
  if (at != bound_.end() && at->first == request.name) return at->second;

  const std::string stored = StoredName(request.name).value_or(request.name);
  const TensorView* tensor = source_.checkpoint->Find(stored);
  const auto fail = [&](const std::string& found) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{}: tensor '{}': expected shape {}, found {}",
                             source_.checkpoint->path(), stored,
                             ShapeToString(request.shape), found)};
  };
  if (tensor == nullptr) return fail("no such tensor");
  if (tensor->shape != request.shape) return fail(ShapeToString(tensor->shape));
  if (!IsFloatLike(tensor->dtype))
    return fail(fmt::format("integer type {}", DTypeName(tensor->dtype)));

  ir::Constant constant{.name = request.name,
                        .type = {tensor->dtype, tensor->shape},
                        .bytes = tensor->data,
                        .owned = nullptr,
                        .rows = {}};
  const bool interleaved = source_.rope_layout == RopeLayout::kInterleaved;
  if (request.rope_head_dim > 0 && interleaved) {
    auto order =
        InterleavedToHalfSplit(request.shape[0], request.rope_head_dim);
    if (request.shape.size() == 1) {
      ReorderElements(constant, order);
    } else {
      constant.rows = std::move(order);
    }
  }
  const ir::ConstantId id = constants_.Add(std::move(constant));
  bound_.insert(at, {request.name, id});
  InsertSorted(known_, stored);
  return id;
}

bool WeightBinder::IsIgnorable(const std::string& stored_name) const {
  // GGUF's is read by the configuration, not bound as a weight; Llama 2's
  // follows from it.
  if (stored_name == "rope_freqs.weight" || stored_name == "rope.freqs")
    return true;
  const auto& suffixes = source_.spec->ignored_suffixes;
  return std::any_of(
      suffixes.begin(), suffixes.end(),
      [&](std::string_view suffix) { return stored_name.ends_with(suffix); });
}

Status WeightBinder::CheckAllUsed() const {
  for (const TensorView& tensor : source_.checkpoint->tensors()) {
    if (std::binary_search(known_.begin(), known_.end(), tensor.name) ||
        IsIgnorable(tensor.name))
      continue;
    return Error{
        ErrorCode::kBadInput,
        fmt::format("{}: tensor '{}' {}{}: expected only tensors of a {}-layer "
                    "{} model, found one that it has no place for",
                    source_.checkpoint->path(), tensor.name,
                    DTypeName(tensor.dtype), ShapeToString(tensor.shape),
                    source_.config.layers, source_.spec->name)};
  }
  return OkStatus();
}

}  // namespace hexllm::models

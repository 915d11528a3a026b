#include "models/weight_binder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/dequantize.h"
#include "base/half.h"

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

const TensorAlias* FindAlias(std::span<const TensorAlias> rows,
                             std::string_view name) {
  for (const TensorAlias& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// Where row `row` of a tensor of heads in half-split order is in interleaved
// order: pairs (2i, 2i+1) become (i, i + R/2).
int64_t InterleavedRow(const WeightRequest& request, int64_t row) {
  const int64_t half = request.rotary_dim / 2;
  const int64_t head = row / request.head_dim * request.head_dim;
  const int64_t i = row - head;
  if (i >= request.rotary_dim) return row;
  return head + (i < half ? 2 * i : 2 * (i - half) + 1);
}

void SetFloats(std::span<const float> values, ir::Constant& constant) {
  constant.owned =
      std::make_shared<const std::string>(AsText(std::as_bytes(values)));
  constant.bytes = AsBytes(*constant.owned);
  constant.type.dtype = DType::kF32;
}

// A vector has one row in the IR's sense, so its elements are put in order by
// value.
void ReorderElements(ir::Constant& constant,
                     const std::vector<int64_t>& order) {
  const DTypeInfo& type = GetDTypeInfo(constant.type.dtype);
  std::vector<float> values(constant.bytes.size() / type.block_bytes *
                            type.block_elems);
  std::vector<float> ordered(order.size());
  DequantizeRow(constant.type.dtype, constant.bytes, values);
  for (size_t i = 0; i < order.size(); ++i)
    ordered[i] = values[static_cast<size_t>(order[i])];
  SetFloats(ordered, constant);
}

bool IsWeightType(DType dtype) {
  return IsFloatLike(dtype) || dtype == DType::kI8;
}

// f64 and int8, which no kernel reads, become f32 and (without loss) f16. Few
// checkpoints have them, so these are copied as a whole. kBadInput for an f64
// that is no number in f32.
Status ConvertRareType(ir::Constant& constant) {
  const ByteSpan bytes = constant.bytes;
  std::string made;
  if (constant.type.dtype == DType::kF64) {
    made.resize(bytes.size() / 2);
    std::vector<float> values(bytes.size() / sizeof(double));
    DequantizeRow(DType::kF64, bytes, values);
    const auto bad = std::find_if(values.begin(), values.end(),
                                  [](float x) { return !std::isfinite(x); });
    if (bad != values.end())
      return Error{ErrorCode::kBadInput,
                   fmt::format("expected f64 values that are finite in f32, "
                               "found {} at element {}",
                               *bad, bad - values.begin())};
    std::memcpy(made.data(), values.data(), made.size());
    constant.type.dtype = DType::kF32;
  } else if (constant.type.dtype == DType::kI8) {
    for (const std::byte byte : bytes) {
      const uint16_t half =
          F32ToF16(static_cast<float>(static_cast<int8_t>(byte)));
      made.append(
          {static_cast<char>(half & 0xFF), static_cast<char>(half >> 8)});
    }
    constant.type.dtype = DType::kF16;
  } else {
    return OkStatus();
  }
  constant.owned = std::make_shared<const std::string>(std::move(made));
  constant.bytes = AsBytes(*constant.owned);
  return OkStatus();
}

// Leaves the rows (elements of a vector) from `first` on, as many as the
// constant has. Within its bytes, and whole blocks.
void TakeRows(ir::Constant& constant, int64_t first) {
  const bool vector = constant.type.shape.size() == 1;
  const auto offset = StorageBytes(
      constant.type.dtype, {first * (vector ? 1 : ir::RowElems(constant))});
  const auto size = StorageBytes(constant.type.dtype, constant.type.shape);
  HX_CHECK(offset.has_value() && size.has_value());
  constant.bytes = constant.bytes.subspan(static_cast<size_t>(*offset),
                                          static_cast<size_t>(*size));
}

}  // namespace

WeightBinder::WeightBinder(const ModelSource& source,
                           ir::ConstantStore& constants)
    : source_(source), constants_(constants) {}

int64_t WeightBinder::RowsOf(FusedPart part) const {
  const DecoderConfig& config = source_.config;
  switch (part) {
    case FusedPart::kQ:
      return config.heads * config.head_dim;
    case FusedPart::kK:
    case FusedPart::kV:
      return config.kv_heads * config.head_dim;
    case FusedPart::kGate:
    case FusedPart::kUp:
      return config.ffn;
    case FusedPart::kWhole:
      break;
  }
  return 0;
}

std::optional<WeightBinder::Place> WeightBinder::FindPlace(
    std::string_view name) const {
  const TensorNaming& names = source_.naming;
  const NameParts parts = SplitName(name);
  const TensorAlias* alias = FindAlias(names.aliases, parts.pattern);
  if (alias == nullptr) alias = FindAlias(names.common, parts.pattern);
  if (alias == nullptr) {
    if (!names.common.empty()) return std::nullopt;
    return Place{.stored = std::string(name)};
  }
  Place place{.stored = std::string(alias->stored), .part = alias->part};
  if (const size_t hole = place.stored.find("{}"); hole != std::string::npos)
    place.stored.replace(hole, 2, parts.layer);
  place.stored += parts.suffix;
  if (alias->part == FusedPart::kWhole) return place;
  for (const TensorAlias& row : names.aliases) {
    if (row.stored != alias->stored) continue;
    if (&row == alias) place.first_row = place.stored_rows;
    place.stored_rows += RowsOf(row.part);
  }
  return place;
}

const TensorView* WeightBinder::Find(std::string_view name) const {
  const auto place = FindPlace(name);
  return place ? source_.checkpoint->Find(place->stored) : nullptr;
}

void WeightBinder::Ignore(std::string_view name) {
  if (auto place = FindPlace(name))
    InsertSorted(known_, std::move(place->stored));
}

Result<const TensorView*> WeightBinder::FindTensor(const WeightRequest& request,
                                                   const Place& place) const {
  Shape shape = request.shape;
  if (place.stored_rows > 0) shape[0] = place.stored_rows;
  const TensorView* tensor = source_.checkpoint->Find(place.stored);
  const auto fail = [&](const std::string& found) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{}: tensor '{}': expected shape {}, found {}",
                             source_.checkpoint->path(), place.stored,
                             ShapeToString(shape), found)};
  };
  if (tensor == nullptr) return fail("no such tensor");
  if (tensor->shape != shape) return fail(ShapeToString(tensor->shape));
  if (!IsWeightType(tensor->dtype))
    return fail(fmt::format("integer type {}", DTypeName(tensor->dtype)));
  // Parts of a vector need not be whole blocks.
  if (shape.size() == 1 && IsBlockType(tensor->dtype))
    return fail(fmt::format("blocks of {}", DTypeName(tensor->dtype)));
  return tensor;
}

// The stored row of each row; empty when they are consecutive ones from
// place.first_row.
std::vector<int64_t> WeightBinder::RowOrder(const WeightRequest& request,
                                            const Place& place) const {
  const bool interleaved = request.head_dim > 0 && source_.naming.rope_layout ==
                                                       RopeLayout::kInterleaved;
  const int64_t shards =
      place.part == FusedPart::kWhole ? 1 : source_.config.fused_shards;
  if (!interleaved && shards == 1) return {};
  const int64_t rows = request.shape[0];
  std::vector<int64_t> order(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = interleaved ? InterleavedRow(request, i) : i;
    const int64_t shard_rows = rows / shards;
    order[static_cast<size_t>(i)] =
        row / shard_rows * (place.stored_rows / shards) +
        place.first_row / shards + row % shard_rows;
  }
  return order;
}

std::vector<std::pair<std::string, ir::ConstantId>>::iterator
WeightBinder::PlaceOf(const std::string& name) {
  return std::lower_bound(
      bound_.begin(), bound_.end(), name,
      [](const auto& a, const auto& b) { return a.first < b; });
}

ir::ConstantId WeightBinder::Make(const std::string& name, Shape shape,
                                  std::span<const float> values) {
  const auto at = PlaceOf(name);
  if (at != bound_.end() && at->first == name) return at->second;
  ir::Constant constant{.name = name,
                        .type = {DType::kF32, std::move(shape)},
                        .bytes = {},
                        .owned = nullptr,
                        .rows = {}};
  SetFloats(values, constant);
  const ir::ConstantId id = constants_.Add(std::move(constant));
  bound_.insert(at, {name, id});
  return id;
}

Result<ir::ConstantId> WeightBinder::Bind(const WeightRequest& request) {
  const auto at = PlaceOf(request.name);
  if (at != bound_.end() && at->first == request.name) return at->second;

  const Place place =
      FindPlace(request.name).value_or(Place{.stored = request.name});
  HX_ASSIGN_OR_RETURN(const TensorView* tensor, FindTensor(request, place));
  ir::Constant constant{.name = request.name,
                        .type = {tensor->dtype, request.shape},
                        .bytes = tensor->data,
                        .owned = nullptr,
                        .rows = {}};
  if (Status status = ConvertRareType(constant); !status.ok())
    return std::move(status).error().With(fmt::format(
        "{}: tensor '{}'", source_.checkpoint->path(), place.stored));
  std::vector<int64_t> order = RowOrder(request, place);
  if (order.empty()) {
    TakeRows(constant, place.first_row);
  } else if (request.shape.size() == 1) {
    ReorderElements(constant, order);
  } else {
    constant.rows = std::move(order);
  }
  const ir::ConstantId id = constants_.Add(std::move(constant));
  bound_.insert(at, {request.name, id});
  InsertSorted(known_, place.stored);
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

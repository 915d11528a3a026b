#include "checkpoint/pytorch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "base/quote.h"
#include "checkpoint/pickle.h"
#include "checkpoint/zip.h"

namespace hexllm {
namespace {

constexpr std::string_view kPickleName = "data.pkl";
constexpr std::string_view kCompiledPrefix = "_orig_mod.";
// Texts can be used again and again in a pickle: what is copied out of it has
// limits of its own. Far above what any checkpoint has.
constexpr size_t kMaxTextBytes = 4096;
constexpr size_t kMaxModelArgs = 256;

Error BadInput(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

// The members of one checkpoint; all names begin with its folder.
class Archive {
 public:
  static Result<Archive> Open(ByteSpan file) {
    Archive archive;
    HX_ASSIGN_OR_RETURN(archive.members_, ParseZip(file));
    for (const ZipMember& member : archive.members_) {
      const size_t slash = member.name.find('/');
      if (slash == std::string_view::npos ||
          member.name.substr(slash + 1) != kPickleName)
        continue;
      archive.folder_ = member.name.substr(0, slash + 1);
      HX_RETURN_IF_ERROR(archive.CheckByteOrder());
      return archive;
    }
    return BadInput(
        fmt::format("expected a PyTorch checkpoint with the member {}, found a "
                    "zip archive without it",
                    kPickleName));
  }

  std::optional<ByteSpan> Find(std::string_view name) const {
    const std::string path = fmt::format("{}{}", folder_, name);
    const auto at = std::lower_bound(
        members_.begin(), members_.end(), path,
        [](const ZipMember& a, const std::string& b) { return a.name < b; });
    if (at == members_.end() || at->name != path) return std::nullopt;
    return at->data;
  }

 private:
  // Files before PyTorch 2.1 do not say; they are little-endian here.
  Status CheckByteOrder() const {
    const auto order = Find("byteorder");
    if (!order || AsText(*order) == "little") return OkStatus();
    return Error{ErrorCode::kUnsupported,
                 fmt::format("byte order: expected little, found {}",
                             Quoted(AsText(*order)))};
  }

  std::vector<ZipMember> members_;
  std::string_view folder_;
};

// The bytes of a tensor's storage from its first element on.
Result<ByteSpan> StorageFrom(const Archive& archive, const PickleValue& storage,
                             int64_t offset) {
  const auto member = storage.text.size() > kMaxTextBytes
                          ? std::nullopt
                          : archive.Find(fmt::format("data/{}", storage.text));
  if (!member)
    return BadInput(
        fmt::format("expected its storage in the member of data/ called {}, "
                    "found none",
                    Quoted(storage.text)));
  const auto bytes = StorageBytes(storage.dtype, {storage.integer});
  if (!bytes || *bytes > member->size())
    return BadInput(
        fmt::format("storage {}: expected {} elements of {}, found "
                    "{} bytes",
                    Quoted(storage.text), storage.integer,
                    DTypeName(storage.dtype), member->size()));
  const auto begin = StorageBytes(storage.dtype, {offset});
  if (!begin || *begin > *bytes)
    return BadInput(
        fmt::format("expected an offset in its storage of {} "
                    "elements, found {}",
                    storage.integer, offset));
  return member->subspan(*begin, *bytes - *begin);
}

// True when the strides are those of dense rows. Axes of one element may have
// any.
bool IsContiguous(const Shape& shape, const Shape& strides) {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    // Cannot overflow: the number of elements is known to fit.
    expected *= shape[i];
  }
  return true;
}

Result<TensorView> ToView(const Archive& archive, const Pickle& pickle,
                          const PickleValue& value) {
  TensorView view;
  view.dtype = value.dtype;
  view.shape = value.shape;
  const auto bytes = StorageBytes(view.dtype, view.shape);
  if (!bytes || *bytes == 0)
    return BadInput(fmt::format(
        "shape: expected dimensions of at least 1 and a size that fits 64 "
        "bits, found {}",
        ShapeToString(view.shape)));
  if (!IsContiguous(value.shape, value.strides))
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("expected dense rows for shape {}, found strides "
                    "{}; save a contiguous tensor",
                    ShapeToString(view.shape), ShapeToString(value.strides))};
  HX_ASSIGN_OR_RETURN(
      const ByteSpan storage,
      StorageFrom(archive, pickle[value.items[0]], value.integer));
  const auto data = Slice(storage, 0, *bytes);
  if (!data)
    return BadInput(
        fmt::format("expected {} bytes for {} {}, found {} in its "
                    "storage",
                    *bytes, DTypeName(view.dtype), ShapeToString(view.shape),
                    storage.size()));
  view.data = *data;
  return view;
}

// The state dict: the dict itself when its values are tensors, else that under
// "model".
Result<const PickleValue*> FindStateDict(const Pickle& pickle) {
  const PickleValue& root = pickle[pickle.root];
  const PickleValue* model = pickle.Find(root, "model");
  if (model != nullptr && model->kind == PickleKind::kDict) return model;
  if (root.kind == PickleKind::kDict) return &root;
  return Error{ErrorCode::kUnsupported,
               "expected a dict of tensors, found another object; save the "
               "model's state dict"};
}

// An entry of the state dict.
struct Entry {
  std::string_view name;  // without the prefix; into the pickle
  const PickleValue* value;
};

// The entries sorted by name, which is unique and short.
Result<std::vector<Entry>> ListEntries(const Pickle& pickle) {
  HX_ASSIGN_OR_RETURN(const PickleValue* dict, FindStateDict(pickle));
  std::vector<Entry> entries;
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2) {
    const PickleValue& name = pickle[dict->items[i]];
    const PickleValue& value = pickle[dict->items[i + 1]];
    if (name.kind != PickleKind::kText || value.kind != PickleKind::kTensor)
      return Error{
          ErrorCode::kUnsupported,
          fmt::format("entry {} {}: expected a named tensor, found another "
                      "object; save the model's state dict, alone or under "
                      "'model'",
                      i / 2 + 1, Quoted(name.text))};
    if (name.text.size() > kMaxTextBytes)
      return Error{ErrorCode::kUnsupported,
                   fmt::format("entry {}: expected a name of at most {} bytes, "
                               "found {}",
                               i / 2 + 1, kMaxTextBytes, name.text.size())};
    std::string_view plain = name.text;
    if (plain.starts_with(kCompiledPrefix))
      plain.remove_prefix(kCompiledPrefix.size());
    entries.push_back({plain, &value});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(
      entries.begin(), entries.end(),
      [](const Entry& a, const Entry& b) { return a.name == b.name; });
  if (twice != entries.end())
    return BadInput(fmt::format("tensor {}: expected once, found twice",
                                Quoted(twice->name)));
  return entries;
}

Status AddTensors(const Archive& archive, const Pickle& pickle,
                  PytorchFile& out) {
  HX_ASSIGN_OR_RETURN(const std::vector<Entry> entries, ListEntries(pickle));
  for (const Entry& entry : entries) {
    auto view = ToView(archive, pickle, *entry.value);
    if (!view.ok())
      return std::move(view).error().With(
          fmt::format("tensor {}", Quoted(entry.name)));
    view->name = entry.name;
    out.tensors.push_back(*std::move(view));
  }
  return OkStatus();
}

// One setting as JSON; nothing for a value that is none.
std::optional<Json> ToJson(const PickleValue& value) {
  switch (value.kind) {
    case PickleKind::kNone:
      return Json(nullptr);
    case PickleKind::kBool:
      return Json(value.integer != 0);
    case PickleKind::kInt:
      return Json(value.integer);
    case PickleKind::kFloat:
      return Json(value.number);
    case PickleKind::kText:
      return Json(value.text);
    default:
      return std::nullopt;
  }
}

Status AddModelArgs(const Pickle& pickle, PytorchFile& out) {
  const PickleValue* args = pickle.Find(pickle[pickle.root], "model_args");
  if (args == nullptr || args->kind != PickleKind::kDict) return OkStatus();
  if (args->items.size() / 2 > kMaxModelArgs)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("'model_args': expected at most {} settings, found {}",
                    kMaxModelArgs, args->items.size() / 2)};
  Json json = Json::object();
  for (size_t i = 0; i + 1 < args->items.size(); i += 2) {
    const PickleValue& key = pickle[args->items[i]];
    const PickleValue& value = pickle[args->items[i + 1]];
    if (std::max(key.text.size(), value.text.size()) > kMaxTextBytes)
      return Error{ErrorCode::kUnsupported,
                   fmt::format("'model_args': setting {}: expected texts of at "
                               "most {} bytes, found a longer one",
                               Quoted(key.text), kMaxTextBytes)};
    auto setting = ToJson(value);
    if (key.kind == PickleKind::kText && setting)
      json[std::string(key.text)] = std::move(*setting);
  }
  out.metadata["model_args"] = DumpJson(json);
  return OkStatus();
}

}  // namespace

bool LooksLikePytorch(ByteSpan file) {
  return AsText(file).starts_with("PK\x03\x04");
}

Result<PytorchFile> ParsePytorch(ByteSpan file) {
  HX_ASSIGN_OR_RETURN(const Archive archive, Archive::Open(file));
  auto pickle = ParsePickle(*archive.Find(kPickleName));
  if (!pickle.ok())
    return std::move(pickle).error().With(std::string(kPickleName));
  PytorchFile out;
  HX_RETURN_IF_ERROR(AddTensors(archive, *pickle, out));
  HX_RETURN_IF_ERROR(AddModelArgs(*pickle, out));
  return out;
}

}  // namespace hexllm

#include "runtime/session_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "artifact/format.h"
#include "base/quote.h"

namespace hexllm {
namespace {

using artifact::IoSpec;

constexpr int64_t kVersion = 1;
constexpr uint64_t kMaxHeaderBytes = uint64_t{1} << 26;
// No model comes near any of them.
constexpr int64_t kMaxLayers = 1 << 16;
constexpr int64_t kMaxTokens = 1 << 26;
constexpr int64_t kMaxHeads = 1 << 16;
constexpr int64_t kMaxHeadDim = 1 << 16;

Error BadInput(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

// A tensor of the file.
struct Entry {
  std::string name;
  DType dtype;
  Shape shape;
  std::optional<KvPart> part = {};
  size_t layer = 0;
  uint64_t begin = 0;  // in the data section
  uint64_t bytes = 0;
};

// All tensors in the order of their data; the last one is the checksum.
Result<std::vector<Entry>> LayOut(const SessionHead& head) {
  std::vector<Entry> entries;
  const auto add_ids = [&](const char* name, size_t count) {
    const auto tokens = static_cast<int64_t>(count);
    if (count > 0) entries.push_back({name, DType::kI32, {tokens}});
  };
  const auto add = [&](KvPart part, const char* name, size_t l,
                       const IoSpec& spec) {
    entries.push_back(
        {fmt::format("{}.{}", name, l), spec.dtype, spec.shape, part, l});
  };
  add_ids("ids", head.ids.size());
  add_ids("evicted", head.evicted.size());
  add_ids("positions", head.positions.size());
  for (size_t l = 0; l < head.k.size(); ++l) {
    add(KvPart::kKeys, "k", l, head.k[l]);
    add(KvPart::kValues, "v", l, head.v[l]);
    if (head.stored[l])
      add(KvPart::kStoredKeys, "stored_k", l, *head.stored[l]);
  }
  entries.push_back({"checksum", DType::kU64, {1}});
  uint64_t end = 0;
  for (Entry& entry : entries) {
    const auto bytes = StorageBytes(entry.dtype, entry.shape);
    const auto next = bytes ? CheckedAdd(end, *bytes) : std::nullopt;
    if (!next) return BadInput("keys and values: their size exceeds 64 bits");
    entry.begin = end;
    entry.bytes = *bytes;
    end = *next;
  }
  return entries;
}

Json KvToJson(const IoSpec& spec, size_t dim_axis) {
  Json json = {{"dtype", DTypeName(spec.dtype)},
               {"heads", spec.shape[0]},
               {"dim", spec.shape[dim_axis]}};
  if (spec.encoding) {
    json["scale"] = spec.encoding->scale;
    json["zero_point"] = spec.encoding->zero_point;
  }
  return json;
}

Json HeadToJson(const SessionHead& head) {
  Json kv = Json::array();
  for (size_t l = 0; l < head.k.size(); ++l) {
    kv.push_back({{"k", KvToJson(head.k[l], 1)},
                  {"v", KvToJson(head.v[l], 2)},
                  {"stored", head.stored[l].has_value()}});
  }
  return {{"version", kVersion},
          {"producer", head.producer},
          {"model",
           {{"id", fmt::format("{:016x}", head.model.id)},
            {"name", head.model.name},
            {"architecture", head.model.architecture},
            {"vocab_size", head.model.vocab_size},
            {"layers", head.model.layers}}},
          {"recipe", head.recipe},
          {"tokens", head.ids.size()},
          {"cached_tokens", head.cached_tokens},
          {"prompt_tokens", head.prompt_tokens},
          {"sink_tokens", head.sink_tokens},
          {"evicted_tokens", head.evicted.size()},
          {"moved_tokens", head.positions.size()},
          {"conversation", head.conversation},
          {"kv", std::move(kv)}};
}

// "F32", as safetensors call it.
std::string UpperName(DType dtype) {
  std::string name(DTypeName(dtype));
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  return name;
}

// The text before the data, a multiple of 8 bytes.
std::string HeaderText(const SessionHead& head,
                       std::span<const Entry> entries) {
  Json json = {
      {"__metadata__", {{"hexllm_session", DumpJson(HeadToJson(head))}}}};
  for (const Entry& entry : entries) {
    json[entry.name] = {
        {"dtype", UpperName(entry.dtype)},
        {"shape", entry.shape},
        {"data_offsets", {entry.begin, entry.begin + entry.bytes}}};
  }
  std::string text = DumpJson(json);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

// XXH3 of the XXH3s of the header and of each tensor, so that neither writer
// nor reader needs all of them at once.
class ChecksumOfParts {
 public:
  void Add(ByteSpan part) { parts_.push_back(artifact::Checksum(part)); }
  uint64_t Get() const {
    return artifact::Checksum(std::as_bytes(std::span(parts_)));
  }

 private:
  std::vector<uint64_t> parts_;
};

// ---- reading ----

struct Limits {
  int64_t least;
  int64_t most;
};

Result<uint32_t> GetCount(const Json& json, std::string_view key,
                          Limits limits) {
  HX_ASSIGN_OR_RETURN(const int64_t n, GetInt(json, key));
  if (n >= limits.least && n <= limits.most) return static_cast<uint32_t>(n);
  return BadInput(fmt::format("{}: expected {} to {}, found {}", key,
                              limits.least, limits.most, n));
}

Result<const Json*> GetObject(const Json& json, std::string_view key) {
  const Json* member = FindMember(json, key);
  if (member != nullptr && member->is_object()) return member;
  return BadInput(fmt::format("{}: expected an object", key));
}

// The codes that zero points may be; nothing for types without codes.
std::optional<Limits> CodeLimits(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return Limits{0, UINT8_MAX};
    case DType::kI8:
      return Limits{INT8_MIN, INT8_MAX};
    case DType::kU16:
      return Limits{0, UINT16_MAX};
    case DType::kI16:
      return Limits{INT16_MIN, INT16_MAX};
    default:
      return std::nullopt;
  }
}

Status ReadEncoding(const Json& json, IoSpec& spec) {
  const auto codes = CodeLimits(spec.dtype);
  if (!codes) {
    if (spec.dtype == DType::kF32 || spec.dtype == DType::kF16 ||
        spec.dtype == DType::kBF16) {
      return OkStatus();
    }
    return BadInput(fmt::format("unexpected element type {}",
                                Quoted(DTypeName(spec.dtype))));
  }
  HX_ASSIGN_OR_RETURN(const double scale, GetNumber(json, "scale"));
  HX_ASSIGN_OR_RETURN(const int64_t zero_point, GetInt(json, "zero_point"));
  const auto narrow = static_cast<float>(scale);
  if (!std::isfinite(narrow) || narrow <= 0 || zero_point < codes->least ||
      zero_point > codes->most) {
    return BadInput(fmt::format("bad encoding: scale {}, zero point {} of {}",
                                scale, zero_point, DTypeName(spec.dtype)));
  }
  spec.encoding = {.scale = narrow,
                   .zero_point = static_cast<int32_t>(zero_point)};
  return OkStatus();
}

// `kind` with N = `tokens`.
Result<IoSpec> ReadKv(const Json& layer, Role role, uint32_t tokens) {
  const bool is_k = role.kind == RoleKind::kKIn;
  HX_ASSIGN_OR_RETURN(const Json* json, GetObject(layer, is_k ? "k" : "v"));
  HX_ASSIGN_OR_RETURN(const std::string name, GetString(*json, "dtype"));
  const auto dtype = FindDTypeByName(name);
  if (!dtype)
    return BadInput(fmt::format("unknown element type {}", Quoted(name)));
  IoSpec spec;
  spec.role = role;
  spec.dtype = *dtype;
  HX_ASSIGN_OR_RETURN(const int64_t heads,
                      GetCount(*json, "heads", {1, kMaxHeads}));
  HX_ASSIGN_OR_RETURN(const int64_t dim,
                      GetCount(*json, "dim", {1, kMaxHeadDim}));
  spec.shape = is_k ? Shape{heads, dim, tokens} : Shape{heads, tokens, dim};
  HX_RETURN_IF_ERROR(ReadEncoding(*json, spec));
  return spec;
}

Status ReadLayers(const Json& json, SessionHead& head) {
  const Json* kv = FindMember(json, "kv");
  if (kv == nullptr || !kv->is_array() || kv->size() != head.model.layers) {
    return BadInput(
        fmt::format("kv: expected an array of {} layers", head.model.layers));
  }
  for (size_t l = 0; l < kv->size(); ++l) {
    const auto index = static_cast<int32_t>(l);
    for (const RoleKind kind : {RoleKind::kKIn, RoleKind::kVIn}) {
      auto spec = ReadKv((*kv)[l], {kind, index}, head.cached_tokens);
      if (!spec.ok())
        return std::move(spec).error().With(fmt::format("layer {}", l));
      (kind == RoleKind::kKIn ? head.k : head.v).push_back(*std::move(spec));
    }
    HX_ASSIGN_OR_RETURN(const bool stored, GetBool((*kv)[l], "stored"));
    auto& of_layer = head.stored.emplace_back();
    if (!stored) continue;
    if (head.positions.empty())
      return BadInput(fmt::format("layer {}: keys of no tokens", l));
    of_layer = head.k.back();
    of_layer->shape[2] = static_cast<int64_t>(head.positions.size());
  }
  return OkStatus();
}

Status ReadModel(const Json& json, ModelIdentity& model) {
  HX_ASSIGN_OR_RETURN(const Json* object, GetObject(json, "model"));
  HX_ASSIGN_OR_RETURN(const std::string id, GetString(*object, "id"));
  if (id.size() != 16 ||
      id.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return BadInput(fmt::format(
        "model id: expected 16 hexadecimal digits, found {}", Quoted(id)));
  }
  model.id = std::stoull(id, nullptr, 16);
  HX_ASSIGN_OR_RETURN(model.name, GetString(*object, "name"));
  HX_ASSIGN_OR_RETURN(model.architecture, GetString(*object, "architecture"));
  HX_ASSIGN_OR_RETURN(model.vocab_size,
                      GetCount(*object, "vocab_size", {1, INT32_MAX}));
  HX_ASSIGN_OR_RETURN(model.layers,
                      GetCount(*object, "layers", {1, kMaxLayers}));
  return OkStatus();
}

// All but the ids, of which there are then as many as there will be; the data
// has `data_bytes`.
Result<SessionHead> ReadHead(const Json& json, size_t data_bytes) {
  HX_ASSIGN_OR_RETURN(const int64_t version, GetInt(json, "version"));
  if (version != kVersion) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("a session of version {}; this hexllm reads version {}",
                    version, kVersion)};
  }
  SessionHead head;
  HX_RETURN_IF_ERROR(ReadModel(json, head.model));
  HX_ASSIGN_OR_RETURN(head.producer, GetString(json, "producer"));
  HX_ASSIGN_OR_RETURN(head.recipe, GetString(json, "recipe"));
  const auto most_tokens = static_cast<int64_t>(
      std::min<size_t>(data_bytes / sizeof(int32_t), kMaxTokens));
  HX_ASSIGN_OR_RETURN(const uint32_t tokens,
                      GetCount(json, "tokens", {1, most_tokens}));
  HX_ASSIGN_OR_RETURN(head.cached_tokens,
                      GetCount(json, "cached_tokens", {1, tokens}));
  HX_ASSIGN_OR_RETURN(head.prompt_tokens,
                      GetCount(json, "prompt_tokens", {0, kMaxTokens}));
  HX_ASSIGN_OR_RETURN(head.sink_tokens,
                      GetCount(json, "sink_tokens", {0, kMaxTokens}));
  HX_ASSIGN_OR_RETURN(const uint32_t evicted,
                      GetCount(json, "evicted_tokens", {0, most_tokens}));
  HX_ASSIGN_OR_RETURN(const uint32_t moved,
                      GetCount(json, "moved_tokens", {0, head.cached_tokens}));
  head.evicted.resize(evicted);
  head.positions.resize(moved);
  if (const Json* conversation = FindMember(json, "conversation"))
    head.conversation = *conversation;
  HX_RETURN_IF_ERROR(ReadLayers(json, head));
  head.ids.resize(tokens);
  return head;
}

// The JSON before the data, and the data.
struct Sections {
  ByteSpan header;
  ByteSpan data;
};

Result<Sections> Split(ByteSpan file) {
  ByteReader reader(file);
  const auto length = reader.Read<uint64_t>();
  if (!length.ok() ||
      *length > std::min<uint64_t>(reader.remaining(), kMaxHeaderBytes)) {
    return BadInput("no session file, or truncated in its header");
  }
  HX_ASSIGN_OR_RETURN(const ByteSpan header, reader.ReadBytes(*length));
  HX_ASSIGN_OR_RETURN(const ByteSpan data,
                      reader.ReadBytes(reader.remaining()));
  return Sections{header, data};
}

Result<SessionHead> ParseHeader(const Sections& sections) {
  HX_ASSIGN_OR_RETURN(const Json header, ParseJson(AsText(sections.header)));
  HX_ASSIGN_OR_RETURN(const Json* metadata, GetObject(header, "__metadata__"));
  HX_ASSIGN_OR_RETURN(const std::string session,
                      GetString(*metadata, "hexllm_session"));
  HX_ASSIGN_OR_RETURN(const Json json, ParseJson(session));
  return ReadHead(json, sections.data.size());
}

enum class Checking : uint8_t { kNothing, kChecksum };

Status TakeIds(const Entry& entry, ByteSpan bytes, SessionHead& head) {
  auto& ids = entry.name == "ids"       ? head.ids
              : entry.name == "evicted" ? head.evicted
                                        : head.positions;
  std::memcpy(ids.data(), bytes.data(), bytes.size());
  const auto wrong =
      std::ranges::find_if(ids, [](int32_t id) { return id < 0; });
  if (wrong == ids.end()) return OkStatus();
  return BadInput(
      fmt::format("ids: token {} is {}", wrong - ids.begin(), *wrong));
}

std::vector<ByteSpan>& PartOf(SavedSession& session, KvPart part) {
  return part == KvPart::kKeys     ? session.k
         : part == KvPart::kValues ? session.v
                                   : session.stored;
}

Result<SavedSession> Parse(ByteSpan file, Checking checking) {
  HX_ASSIGN_OR_RETURN(const Sections sections, Split(file));
  auto head = ParseHeader(sections);
  if (!head.ok()) return std::move(head).error().With("header");
  SavedSession session;
  session.head = *std::move(head);
  HX_ASSIGN_OR_RETURN(const auto entries, LayOut(session.head));
  const Entry& last = entries.back();
  if (sections.data.size() != last.begin + last.bytes) {
    return BadInput(fmt::format("expected {} bytes of data, found {}",
                                last.begin + last.bytes, sections.data.size()));
  }
  for (const KvPart part :
       {KvPart::kKeys, KvPart::kValues, KvPart::kStoredKeys})
    PartOf(session, part).resize(session.head.k.size());
  // Everything else in the header follows from what was read.
  if (HeaderText(session.head, entries) != AsText(sections.header))
    return BadInput("header: it contradicts itself");
  ChecksumOfParts checksum;
  checksum.Add(sections.header);
  for (const Entry& entry : entries) {
    const ByteSpan part = sections.data.subspan(entry.begin, entry.bytes);
    if (&entry == &last) {
      uint64_t expected = 0;
      std::memcpy(&expected, part.data(), sizeof(expected));
      if (checking == Checking::kChecksum && expected != checksum.Get())
        return BadInput("altered or damaged: the checksum does not fit");
      break;
    }
    if (checking == Checking::kChecksum) checksum.Add(part);
    if (!entry.part) {
      HX_RETURN_IF_ERROR(TakeIds(entry, part, session.head));
    } else {
      PartOf(session, *entry.part)[entry.layer] = part;
    }
  }
  return session;
}

}  // namespace

ModelIdentity IdentityOf(const artifact::Manifest& manifest) {
  return {.id = manifest.model_id,
          .name = manifest.model_name,
          .architecture = manifest.architecture,
          .vocab_size = manifest.vocab_size,
          .layers = manifest.layers};
}

Status WriteSession(OutputFile& file, const SessionHead& head,
                    const FillKv& fill) {
  HX_ASSIGN_OR_RETURN(const auto entries, LayOut(head));
  ChecksumOfParts checksum;
  const auto write = [&](ByteSpan part) {
    checksum.Add(part);
    return file.Write(part);
  };
  const std::string header = HeaderText(head, entries);
  const uint64_t length = header.size();
  HX_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(&length, 1))));
  HX_RETURN_IF_ERROR(write(AsBytes(header)));
  for (const auto& ids : {head.ids, head.evicted, head.positions}) {
    if (!ids.empty()) HX_RETURN_IF_ERROR(write(std::as_bytes(std::span(ids))));
  }
  std::vector<std::byte> tensor;
  for (const Entry& entry : entries) {
    if (!entry.part) continue;
    tensor.resize(entry.bytes);
    fill(*entry.part, entry.layer, tensor);
    HX_RETURN_IF_ERROR(write(tensor));
  }
  const uint64_t sum = checksum.Get();
  HX_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(&sum, 1))));
  return file.Commit();
}

Result<SavedSession> ParseSession(ByteSpan file) {
  return Parse(file, Checking::kChecksum);
}

Result<SessionFile> OpenSession(const std::string& path) {
  SessionFile out;
  HX_ASSIGN_OR_RETURN(out.file, MappedFile::Open(path));
  auto saved = ParseSession(out.file.bytes());
  if (!saved.ok()) return std::move(saved).error().With(path);
  out.saved = *std::move(saved);
  return out;
}

Result<SavedSession> ParseUnverifiedSession(ByteSpan file) {
  return Parse(file, Checking::kNothing);
}

}  // namespace hexllm

#include "runtime/session_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/quote.h"
#include "runtime/io_codec.h"

namespace hexllm {
namespace {

using artifact::IoSpec;
using artifact::Manifest;

// Keys and values of `tokens` columns in the form of a cache.
struct CacheSpecs {
  std::vector<IoSpec> k, v;  // [L], as SessionHead has them
};

CacheSpecs SpecsOf(const Manifest& manifest, uint32_t tokens) {
  CacheSpecs specs{.k = std::vector<IoSpec>(manifest.layers),
                   .v = std::vector<IoSpec>(manifest.layers)};
  for (const artifact::GraphEntry& graph : manifest.graphs) {
    for (IoSpec spec : graph.outputs) {
      const bool is_k = spec.role.kind == RoleKind::kKOut;
      if (!is_k && spec.role.kind != RoleKind::kVOut) continue;
      spec.shape[is_k ? 2 : 1] = tokens;
      spec.role.kind = is_k ? RoleKind::kKIn : RoleKind::kVIn;
      const auto layer = static_cast<size_t>(spec.role.index);
      (is_k ? specs.k : specs.v)[layer] = std::move(spec);
    }
  }
  return specs;
}

// Copies the first columns of each of a cache tensor's rows; see
// KvManager::Positions. `out` has exactly as many as are wanted.
void CopyColumns(std::span<const std::byte> positions, uint64_t rows,
                 std::span<std::byte> out) {
  const size_t from = positions.size() / rows;
  const size_t to = out.size() / rows;
  for (size_t row = 0; row < rows; ++row)
    std::memcpy(out.data() + row * to, positions.data() + row * from, to);
}

// `in`, rows of `columns` columns, to the first columns of the rows of `out`.
void SpreadColumns(std::span<const std::byte> in, uint64_t rows,
                   std::span<std::byte> out) {
  const size_t from = in.size() / rows;
  const size_t to = out.size() / rows;
  for (size_t row = 0; row < rows; ++row)
    std::memcpy(out.data() + row * to, in.data() + row * from, from);
}

uint64_t Rows(const IoSpec& spec) {
  const auto dim = [&](size_t axis) {
    return static_cast<uint64_t>(spec.shape[axis]);
  };
  return spec.role.kind == RoleKind::kKIn ? dim(0) * dim(1) : dim(0);
}

std::string Describe(const ModelIdentity& model) {
  return fmt::format("{} ({}, {} layers, vocabulary {}, id {:016x})",
                     Quoted(model.name), Printable(model.architecture),
                     model.layers, model.vocab_size, model.id);
}

// Decodes and encodes `bytes` of the form `from`, in pieces.
void Reencode(ByteSpan bytes, const IoSpec& from, const IoSpec& to,
              std::span<std::byte> out) {
  constexpr size_t kPiece = 1024;
  float values[kPiece];
  const size_t in_size = ElementBytes(from.dtype);
  const size_t out_size = ElementBytes(to.dtype);
  const size_t count = bytes.size() / in_size;
  for (size_t i = 0; i < count; i += kPiece) {
    const size_t n = std::min(kPiece, count - i);
    const auto piece = std::span(values).first(n);
    DecodeFloats(bytes.subspan(i * in_size, n * in_size), from, piece);
    EncodeFloats(piece, to, out.subspan(i * out_size, n * out_size));
  }
}

// What the sink has dropped and moved; positions of tokens stand in i32.
void DescribeSink(Sequence& sequence, SessionHead& head) {
  head.stored.resize(head.k.size());
  if (!sequence.sink) return;
  head.sink_tokens = sequence.sink->sink_tokens();
  const auto positions = sequence.sink->positions();
  if (positions.empty()) return;
  head.positions.assign(positions.begin(), positions.end());
  for (size_t l = 0; l < head.k.size(); ++l) {
    if (sequence.sink->Stored(l).empty()) continue;
    head.stored[l] = head.k[l];
    head.stored[l]->shape[2] = static_cast<int64_t>(positions.size());
  }
}

// The sink of the cache that takes a session with one.
Status CheckSinkFits(const SessionHead& head, const Sequence& sequence) {
  if (head.positions.empty() && head.evicted.empty()) return OkStatus();
  if (!sequence.sink) {
    return Error{ErrorCode::kUsage,
                 "the session has dropped tokens, and this artifact has no "
                 "attention sink; see compile --use-attention-sink"};
  }
  if (head.sink_tokens != sequence.sink->sink_tokens()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("the session's attention sink has {} tokens, this "
                             "artifact's {}",
                             head.sink_tokens, sequence.sink->sink_tokens())};
  }
  if (head.cached_tokens < head.sink_tokens) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("cached_tokens: expected {} at least, those of the "
                    "attention sink, found {}",
                    head.sink_tokens, head.cached_tokens)};
  }
  for (size_t c = 0; c < head.positions.size(); ++c) {
    const auto position = static_cast<size_t>(head.positions[c]);
    if (position >= c && position < sequence.kv.capacity()) continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("column {} was made at position {}; there are {}: "
                             "a session of a longer context",
                             c, position, sequence.kv.capacity())};
  }
  for (size_t l = 0; l < head.k.size(); ++l) {
    const bool wanted =
        !head.positions.empty() && !sequence.sink->Stored(l).empty();
    if (head.stored[l].has_value() == wanted) continue;
    return Error{ErrorCode::kBadInput,
                 fmt::format("layer {}: expected {}stored keys", l,
                             wanted ? "" : "no ")};
  }
  return OkStatus();
}

}  // namespace

Status SaveSequence(const artifact::Artifact& artifact, Sequence& sequence,
                    const SaveRequest& request) {
  KvManager& kv = sequence.kv;
  if (kv.tokens() == 0)
    return Error{ErrorCode::kUsage, "nothing to save: run a prompt first"};
  const Manifest& manifest = artifact.manifest();
  const uint32_t cached = std::min(kv.tokens(), kv.capacity());
  CacheSpecs specs = SpecsOf(manifest, cached);
  SessionHead head{.model = IdentityOf(manifest),
                   .producer = manifest.producer,
                   .recipe = manifest.recipe,
                   .prompt_tokens = request.prompt_tokens,
                   .ids = sequence.ids,
                   .cached_tokens = cached,
                   .k = std::move(specs.k),
                   .v = std::move(specs.v),
                   .evicted = sequence.evicted,
                   .positions = {},
                   .stored = {},
                   .conversation = request.conversation};
  DescribeSink(sequence, head);
  return WriteSession(request.file, head,
                      [&](KvPart part, size_t layer, std::span<std::byte> out) {
                        const bool is_v = part == KvPart::kValues;
                        const IoSpec& form =
                            is_v ? head.v[layer] : head.k[layer];
                        CopyColumns(part == KvPart::kStoredKeys
                                        ? sequence.sink->Stored(layer)
                                        : kv.Positions(form.role.kind, layer),
                                    Rows(form), out);
                      });
}

Status CheckFits(const SavedSession& saved, const Manifest& manifest,
                 const Sequence& sequence) {
  const uint32_t capacity = sequence.kv.capacity();
  const SessionHead& head = saved.head;
  const ModelIdentity model = IdentityOf(manifest);
  if (head.model.id != model.id || head.model.layers != model.layers ||
      head.model.vocab_size != model.vocab_size) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("a session of another model: it is of {}, this "
                             "is {}",
                             Describe(head.model), Describe(model))};
  }
  const CacheSpecs specs = SpecsOf(manifest, head.cached_tokens);
  for (size_t l = 0; l < manifest.layers; ++l) {
    if (head.k[l].shape == specs.k[l].shape &&
        head.v[l].shape == specs.v[l].shape)
      continue;
    return Error{ErrorCode::kUnsupported,
                 fmt::format("layer {}: expected keys {}, found {}", l,
                             ShapeToString(specs.k[l].shape),
                             ShapeToString(head.k[l].shape))};
  }
  for (const auto& ids : {head.ids, head.evicted}) {
    for (const int32_t id : ids) {
      if (static_cast<uint32_t>(id) < manifest.vocab_size) continue;
      return Error{ErrorCode::kBadInput,
                   fmt::format("ids: expected below {}, found {}",
                               manifest.vocab_size, id)};
    }
  }
  HX_RETURN_IF_ERROR(CheckSinkFits(head, sequence));
  if (head.cached_tokens <= capacity) return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("the session has {} tokens in its cache; there is "
                           "room for {}. Compile with a larger "
                           "--max-context-len",
                           head.cached_tokens, capacity)};
}

void RestoreSequence(const SavedSession& saved, const Manifest& manifest,
                     Sequence& sequence) {
  const SessionHead& head = saved.head;
  const CacheSpecs specs = SpecsOf(manifest, head.cached_tokens);
  StepColumns columns;
  columns.step_tokens = head.cached_tokens;
  std::vector<std::vector<std::byte>> encoded;
  const auto take = [&](ByteSpan bytes, const IoSpec& from, const IoSpec& to) {
    if (SameStorage(from, to)) return bytes;
    auto& out = encoded.emplace_back(*StorageBytes(to.dtype, to.shape));
    Reencode(bytes, from, to, out);
    return ByteSpan(out);
  };
  encoded.reserve(2 * size_t{manifest.layers});
  for (size_t l = 0; l < manifest.layers; ++l) {
    columns.k.push_back(take(saved.k[l], head.k[l], specs.k[l]));
    columns.v.push_back(take(saved.v[l], head.v[l], specs.v[l]));
  }
  ResetSequence(sequence);
  std::vector<uint32_t> all(head.cached_tokens);
  std::iota(all.begin(), all.end(), 0U);
  sequence.kv.Commit(columns, all);
  sequence.ids.assign(head.ids.begin(), head.ids.end());
  if (!sequence.sink) return;
  sequence.evicted = head.evicted;
  const std::vector<uint32_t> positions(head.positions.begin(),
                                        head.positions.end());
  for (size_t l = 0; l < manifest.layers; ++l) {
    if (!head.stored[l]) continue;
    IoSpec spec = specs.k[l];
    spec.shape = head.stored[l]->shape;
    encoded.clear();
    SpreadColumns(take(saved.stored[l], *head.stored[l], spec), Rows(spec),
                  sequence.sink->Stored(l));
  }
  sequence.sink->Restore(positions);
}

}  // namespace hexllm

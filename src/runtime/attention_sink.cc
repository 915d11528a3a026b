#include "runtime/attention_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "runtime/io_codec.h"

namespace hexllm {
namespace {

using artifact::GraphEntry;
using artifact::IoSpec;

// Columns [begin, end) of each row of `from` to the same place of `to`, both
// with `rows` equal rows.
struct ColumnRange {
  uint64_t begin;
  uint64_t end;
};
void CopyRange(std::span<const std::byte> from, std::span<std::byte> to,
               uint64_t column_bytes, uint64_t row_bytes, ColumnRange range) {
  const size_t at = range.begin * column_bytes;
  const size_t bytes = (range.end - range.begin) * column_bytes;
  for (size_t row = 0; row < from.size(); row += row_bytes)
    std::memcpy(to.data() + row + at, from.data() + row + at, bytes);
}

size_t FindOutput(const GraphEntry& entry, const Role& role) {
  const auto found = std::ranges::find_if(
      entry.outputs, [&](const IoSpec& spec) { return spec.role == role; });
  HX_CHECK(found != entry.outputs.end());  // the artifact's reader has looked
  return static_cast<size_t>(found - entry.outputs.begin());
}

}  // namespace

AttentionSink::AttentionSink(const AttentionSinkConfig& config)
    : config_(config),
      settings_(*config.artifact->manifest().attention_sink),
      positions_(config.kv->capacity()),
      shifts_(config.kv->capacity()) {}

Result<std::unique_ptr<AttentionSink>> AttentionSink::Create(
    const AttentionSinkConfig& config) {
  const artifact::Manifest& manifest = config.artifact->manifest();
  if (!manifest.attention_sink) return std::unique_ptr<AttentionSink>();
  std::unique_ptr<AttentionSink> sink(new AttentionSink(config));
  for (size_t i = 0; i < manifest.graphs.size(); ++i) {
    if (manifest.graphs[i].kind == GraphKind::kEvictor)
      HX_RETURN_IF_ERROR(sink->Load(i));
  }
  return sink;
}

Status AttentionSink::Load(size_t index) {
  const GraphEntry& entry = config_.artifact->manifest().graphs[index];
  if (entry.step_tokens != config_.kv->capacity()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("the attention sink is for a cache of {} tokens, "
                             "found {}",
                             entry.step_tokens, config_.kv->capacity())};
  }
  HX_ASSIGN_OR_RETURN(auto graph,
                      config_.engine->Load(config_.artifact, index));
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    HX_RETURN_IF_ERROR(entry.inputs[i].role.kind == RoleKind::kKIn
                           ? LoadKeys(*graph, i)
                           : LoadRope(*graph, i));
  }
  graphs_.push_back(std::move(graph));
  return OkStatus();
}

Status AttentionSink::LoadKeys(ExecutableGraph& graph, size_t input) {
  const GraphEntry& entry = graph.entry();
  const IoSpec& spec = entry.inputs[input];
  Keys keys{.layer = static_cast<size_t>(spec.role.index),
            .column_bytes = ElementBytes(spec.dtype),
            .stored = {},
            .graph = &graph,
            .output = FindOutput(
                entry, {.kind = RoleKind::kKOut, .index = spec.role.index})};
  const size_t bytes = *StorageBytes(spec.dtype, spec.shape);
  HX_ASSIGN_OR_RETURN(keys.stored, config_.engine->Allocate(bytes));
  HX_RETURN_IF_ERROR(
      graph.Bind(IoDirection::kInput, input, keys.stored.bytes()));
  keys_.push_back(std::move(keys));
  return OkStatus();
}

Status AttentionSink::LoadRope(ExecutableGraph& graph, size_t input) {
  const IoSpec& spec = graph.entry().inputs[input];
  const size_t bytes = *StorageBytes(spec.dtype, spec.shape);
  HX_ASSIGN_OR_RETURN(Buffer buffer, config_.engine->Allocate(bytes));
  const std::span<std::byte> memory = buffer.bytes();
  ropes_.push_back(
      {std::move(buffer), ShiftFiller(*config_.artifact, spec, memory)});
  return graph.Bind(IoDirection::kInput, input, memory);
}

void AttentionSink::Rewind(uint32_t tokens) {
  turned_ = std::min(turned_, tokens);
}

// Notes the codes of columns that were made since the last eviction, and drops
// those that go.
void AttentionSink::KeepCodes(Keys& keys, uint32_t tokens) {
  const uint64_t row_bytes = keys.column_bytes * config_.kv->capacity();
  const auto stored = keys.stored.bytes();
  CopyRange(config_.kv->Positions(RoleKind::kKIn, keys.layer), stored,
            keys.column_bytes, row_bytes, {turned_, tokens});
  const uint32_t from = settings_.sink_tokens + settings_.evict_tokens;
  for (size_t row = 0; row < stored.size(); row += row_bytes) {
    std::memmove(
        stored.data() + row + settings_.sink_tokens * keys.column_bytes,
        stored.data() + row + from * keys.column_bytes,
        (tokens - from) * keys.column_bytes);
  }
}

// With the smart mask the cache stays where it is; with the shift pointer its
// positions do, as long as its arrangement does.
Status AttentionSink::BindCache() {
  for (Keys& keys : keys_) {
    HX_RETURN_IF_ERROR(
        keys.graph->Bind(IoDirection::kOutput, keys.output,
                         config_.kv->Positions(RoleKind::kKIn, keys.layer)));
  }
  return OkStatus();
}

Status AttentionSink::Evict() {
  KvManager& kv = *config_.kv;
  const uint32_t sink = settings_.sink_tokens;
  const uint32_t tokens = kv.tokens();
  HX_CHECK(tokens > sink + settings_.evict_tokens);
  kv.Arrange(kv.capacity());
  std::iota(positions_.begin() + turned_, positions_.begin() + tokens, turned_);
  for (Keys& keys : keys_) KeepCodes(keys, tokens);
  std::copy(positions_.begin() + sink + settings_.evict_tokens,
            positions_.begin() + tokens, positions_.begin() + sink);
  kv.Remove(sink, settings_.evict_tokens);
  turned_ = kv.tokens();
  std::ranges::fill(shifts_, 0U);
  for (uint32_t c = 0; c < turned_; ++c) shifts_[c] = positions_[c] - c;
  for (Rope& rope : ropes_) rope.filler.Fill(shifts_, prompt_tokens_);
  HX_RETURN_IF_ERROR(BindCache());
  for (auto& graph : graphs_) HX_RETURN_IF_ERROR(graph->Execute({}));
  // Turned by nothing; a device may round even then.
  for (const Keys& keys : keys_) {
    CopyRange(keys.stored.bytes(), kv.Positions(RoleKind::kKIn, keys.layer),
              keys.column_bytes, keys.column_bytes * kv.capacity(), {0, sink});
  }
  ++evictions_;
  return OkStatus();
}

std::span<std::byte> AttentionSink::Stored(size_t layer) {
  for (Keys& keys : keys_) {
    if (keys.layer == layer) return keys.stored.bytes();
  }
  return {};
}

void AttentionSink::Restore(std::span<const uint32_t> positions) {
  std::ranges::copy(positions, positions_.begin());
  turned_ = static_cast<uint32_t>(positions.size());
}

}  // namespace hexllm

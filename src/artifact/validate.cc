#include "artifact/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>

#include "artifact/artifact.h"
#include "artifact/format.h"
#include "base/bytes.h"
#include "base/dequantize.h"
#include "base/quote.h"

namespace hexllm::artifact {
namespace {

// Token ids are int32.
constexpr uint32_t kMaxVocab = std::numeric_limits<int32_t>::max();
// Positions are int32 as well, and no model reaches this.
constexpr uint32_t kMaxContext = 1u << 26;
constexpr uint32_t kMaxLayers = 1u << 16;

constexpr std::string_view kStages[] = {"fp", "qdq", "device"};

Status ValidateRange(const char* what, uint32_t found, uint32_t most) {
  if (found >= 1 && found <= most) return OkStatus();
  return Invalid(
      fmt::format("{}: expected 1 to {}, found {}", what, most, found));
}

Status ValidateText(const char* what, const std::string& text) {
  if (text.size() <= kMaxNameBytes) return OkStatus();
  return Invalid(fmt::format("{}: expected at most {} bytes, found {}", what,
                             kMaxNameBytes, text.size()));
}

Status ValidateHead(const Manifest& manifest) {
  HX_RETURN_IF_ERROR(ValidateText("producer", manifest.producer));
  HX_RETURN_IF_ERROR(ValidateText("model name", manifest.model_name));
  HX_RETURN_IF_ERROR(ValidateText("architecture", manifest.architecture));
  HX_RETURN_IF_ERROR(ValidateText("recipe", manifest.recipe));
  if (std::find(std::begin(kStages), std::end(kStages), manifest.stage) ==
      std::end(kStages)) {
    return Invalid(fmt::format("stage: expected fp, qdq or device, found {}",
                               Quoted(manifest.stage)));
  }
  HX_RETURN_IF_ERROR(
      ValidateRange("vocabulary size", manifest.vocab_size, kMaxVocab));
  HX_RETURN_IF_ERROR(ValidateRange("layers", manifest.layers, kMaxLayers));
  HX_RETURN_IF_ERROR(
      ValidateRange("context length", manifest.context_tokens, kMaxContext));
  std::set<uint32_t> windows;
  for (const uint32_t window : manifest.mask_windows) {
    if (!windows.insert(window).second) {
      return Invalid(
          fmt::format("attention window {} is listed twice", window));
    }
  }
  return OkStatus();
}

Status ValidateRopeSegment(const Manifest& manifest, const RopeTable& table,
                           uint32_t segment) {
  HX_RETURN_IF_ERROR(ValidateReference(manifest, segment,
                                       SegmentKind::kRopeTable, "RoPE table"));
  const auto elems = CheckedMul(table.positions, table.half_dim);
  const auto bytes = elems ? CheckedMul(*elems, sizeof(float)) : std::nullopt;
  const SegmentInfo& info = manifest.segments[segment];
  if (bytes && info.bytes == *bytes) return OkStatus();
  return Invalid(fmt::format(
      "segment {}: expected f32 [{},{}] of a RoPE table, found {} bytes",
      Quoted(info.name), table.positions, table.half_dim, info.bytes));
}

Status ValidateRopeTable(const Manifest& manifest, size_t index) {
  const RopeTable& table = manifest.rope_tables[index];
  const std::string what = fmt::format("RoPE table {}", index);
  if (table.half_dim == 0) return Invalid(what + ": it has no columns");
  if (table.positions < manifest.context_tokens) {
    return Invalid(
        fmt::format("{}: expected a row for each of {} positions, "
                    "found {} rows",
                    what, manifest.context_tokens, table.positions));
  }
  HX_RETURN_IF_ERROR(ValidateRopeSegment(manifest, table, table.cos_segment));
  HX_RETURN_IF_ERROR(ValidateRopeSegment(manifest, table, table.sin_segment));
  if (!table.long_prompts) return OkStatus();
  const LongRope& rows = *table.long_prompts;
  HX_RETURN_IF_ERROR(ValidateRopeSegment(manifest, table, rows.cos_segment));
  return ValidateRopeSegment(manifest, table, rows.sin_segment);
}

Status ValidateEmbedding(const Manifest& manifest) {
  if (!manifest.embedding) return OkStatus();
  const EmbeddingTable& table = *manifest.embedding;
  HX_RETURN_IF_ERROR(ValidateReference(
      manifest, table.segment, SegmentKind::kEmbedding, "embedding table"));
  if (!IsFloatLike(table.dtype)) {
    return Invalid(fmt::format("embedding table: unexpected element type {}",
                               DTypeName(table.dtype)));
  }
  const Shape shape = {manifest.vocab_size, table.width};
  const auto bytes = StorageBytes(table.dtype, shape);
  const SegmentInfo& info = manifest.segments[table.segment];
  if (bytes && table.width > 0 && info.bytes == *bytes) return OkStatus();
  return Invalid(fmt::format(
      "segment {}: expected {} {} of the embedding table, found {} bytes",
      Quoted(info.name), DTypeName(table.dtype), ShapeToString(shape),
      info.bytes));
}

Status ValidateTokenId(const Manifest& manifest, const char* what, int32_t id) {
  if (id >= 0 && static_cast<uint32_t>(id) < manifest.vocab_size) {
    return OkStatus();
  }
  return Invalid(fmt::format("{}: expected a token id below {}, found {}", what,
                             manifest.vocab_size, id));
}

struct NumberRange {
  const char* what;
  float least;
  float most;
};

Status ValidateNumber(const NumberRange& range, std::optional<float> number) {
  // Not the negation: NaN must fail.
  if (!number || (*number >= range.least && *number <= range.most)) {
    return OkStatus();
  }
  return Invalid(fmt::format("{}: expected {} to {}, found {}", range.what,
                             range.least, range.most, *number));
}

Status ValidateGeneration(const Manifest& manifest) {
  const GenerationDefaults& generation = manifest.generation;
  for (const int32_t id : generation.end_ids) {
    HX_RETURN_IF_ERROR(ValidateTokenId(manifest, "end of answer", id));
  }
  if (generation.bos_id) {
    HX_RETURN_IF_ERROR(
        ValidateTokenId(manifest, "begin of text", *generation.bos_id));
  }
  if (generation.top_k && *generation.top_k < 0) {
    return Invalid(
        fmt::format("top_k: expected 0 or more, found {}", *generation.top_k));
  }
  constexpr float kMost = std::numeric_limits<float>::max();
  HX_RETURN_IF_ERROR(
      ValidateNumber({"temperature", 0, kMost}, generation.temperature));
  HX_RETURN_IF_ERROR(ValidateNumber({"top_p", 0, 1}, generation.top_p));
  HX_RETURN_IF_ERROR(ValidateNumber({"min_p", 0, 1}, generation.min_p));
  // Logits are divided by it.
  return ValidateNumber(
      {"repetition_penalty", std::numeric_limits<float>::min(), kMost},
      generation.repetition_penalty);
}

Status ValidateSpecialTokens(const Manifest& manifest) {
  std::set<std::string_view> names;
  for (const NamedText& token : manifest.special_tokens) {
    if (token.name.empty() || !names.insert(token.name).second) {
      return Invalid(
          fmt::format("special token {}: the name is empty or used twice",
                      Quoted(token.name)));
    }
    HX_RETURN_IF_ERROR(ValidateText("special token's name", token.name));
    HX_RETURN_IF_ERROR(ValidateText("special token", token.text));
  }
  return OkStatus();
}

Status ValidateTextSegments(const Manifest& manifest) {
  if (manifest.tokenizer_segment) {
    HX_RETURN_IF_ERROR(ValidateReference(manifest, *manifest.tokenizer_segment,
                                         SegmentKind::kTokenizer, "tokenizer"));
  }
  if (manifest.chat_template_segment) {
    HX_RETURN_IF_ERROR(
        ValidateReference(manifest, *manifest.chat_template_segment,
                          SegmentKind::kChatTemplate, "chat template"));
  }
  return OkStatus();
}

}  // namespace

std::string_view SegmentKindName(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::kWeights:
      return "weights";
    case SegmentKind::kCpuPlan:
      return "cpu plan";
    case SegmentKind::kQnnContext:
      return "qnn context";
    case SegmentKind::kRopeTable:
      return "rope table";
    case SegmentKind::kTokenizer:
      return "tokenizer";
    case SegmentKind::kChatTemplate:
      return "chat template";
    case SegmentKind::kText:
      return "text";
    case SegmentKind::kEmbedding:
      return "embedding";
  }
  return "unknown";
}

Status ValidateReference(const Manifest& manifest, uint32_t segment,
                         SegmentKind kind, const char* what) {
  if (segment >= manifest.segments.size()) {
    return Invalid(
        fmt::format("{}: expected a segment below {}, found segment {}", what,
                    manifest.segments.size(), segment));
  }
  const SegmentInfo& info = manifest.segments[segment];
  if (info.kind == kind) return OkStatus();
  return Invalid(fmt::format("{}: expected a {} segment, found {} ({})", what,
                             SegmentKindName(kind), Quoted(info.name),
                             SegmentKindName(info.kind)));
}

Status ValidateSegments(const Manifest& manifest) {
  std::set<std::string_view> names;
  uint64_t free_from = kSegmentAlignment;
  for (const SegmentInfo& segment : manifest.segments) {
    if (segment.name.empty() || segment.name.size() > kMaxNameBytes ||
        !names.insert(segment.name).second) {
      return Invalid(
          fmt::format("segment {}: the name is empty, too long or "
                      "used twice",
                      Quoted(segment.name)));
    }
    if (segment.offset % kSegmentAlignment != 0 || segment.offset < free_from) {
      return Invalid(fmt::format(
          "segment {}: expected a multiple of {} from {} on, found offset {}",
          Quoted(segment.name), kSegmentAlignment, free_from, segment.offset));
    }
    const auto end = CheckedAdd(segment.offset, segment.bytes);
    if (!end) {
      return Invalid(fmt::format("segment {}: {} bytes at {} exceed 64 bits",
                                 Quoted(segment.name), segment.bytes,
                                 segment.offset));
    }
    free_from = *end;
  }
  return OkStatus();
}

Status ValidateManifest(const Manifest& manifest) {
  HX_RETURN_IF_ERROR(ValidateHead(manifest));
  HX_RETURN_IF_ERROR(ValidateSegments(manifest));
  for (size_t i = 0; i < manifest.rope_tables.size(); ++i) {
    HX_RETURN_IF_ERROR(ValidateRopeTable(manifest, i));
  }
  HX_RETURN_IF_ERROR(ValidateEmbedding(manifest));
  HX_RETURN_IF_ERROR(ValidateTextSegments(manifest));
  HX_RETURN_IF_ERROR(ValidateSpecialTokens(manifest));
  HX_RETURN_IF_ERROR(ValidateGeneration(manifest));
  for (const GraphEntry& graph : manifest.graphs) {
    Status status = ValidateGraph(manifest, graph);
    if (!status.ok()) {
      return std::move(status).error().With("graph " + Quoted(graph.name));
    }
  }
  return ValidateSteps(manifest);
}

}  // namespace hexllm::artifact

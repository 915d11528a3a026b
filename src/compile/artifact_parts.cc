#include "compile/artifact_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "artifact/format.h"
#include "base/bytes.h"
#include "base/check.h"
#include "compile/version.h"
#include "models/decoder.h"
#include "models/rope_table.h"

namespace hexllm {
namespace {

struct RopeSegments {
  uint32_t cos = 0;
  uint32_t sin = 0;
};

Result<RopeSegments> AddRope(const std::string& name,
                             const models::RopeTableData& table,
                             artifact::SegmentSink& sink) {
  RopeSegments segments;
  HX_ASSIGN_OR_RETURN(
      segments.cos, sink.Add({name + "/cos", artifact::SegmentKind::kRopeTable},
                             std::as_bytes(std::span(table.cos))));
  HX_ASSIGN_OR_RETURN(
      segments.sin, sink.Add({name + "/sin", artifact::SegmentKind::kRopeTable},
                             std::as_bytes(std::span(table.sin))));
  return segments;
}

// Tensors that differ do so at once: reading all of a checkpoint would take
// long.
constexpr size_t kIdBytes = 256;

template <typename T>
void WriteAll(std::span<const T> numbers, ByteWriter& out) {
  out.Write<uint64_t>(numbers.size());
  out.WriteBytes(std::as_bytes(numbers));
}

}  // namespace

// Manifest::model_id: the names, forms and first bytes of all tensors, and
// what else keys and values depend on.
uint64_t ModelId(const models::ModelSource& source) {
  if (source.id) return *source.id;
  ByteWriter out;
  for (const TensorView& tensor : source.checkpoint->tensors()) {
    out.WriteString(tensor.name);
    out.WriteString(DTypeName(tensor.dtype));
    WriteAll<int64_t>(tensor.shape, out);
    out.WriteBytes(tensor.data.first(std::min(tensor.data.size(), kIdBytes)));
  }
  const models::DecoderConfig& config = source.config;
  out.WriteString(config.architecture);
  for (const int64_t n : {config.layers, config.heads, config.kv_heads,
                          config.head_dim, config.hidden, config.vocab})
    out.Write(n);
  for (const double n :
       {config.norm_eps, config.norm_weight_offset, config.attention_scale,
        config.attention_softcap, config.embedding_scale, config.residual_scale,
        config.logits_scale, config.logits_softcap})
    out.Write(n);
  out.Write(config.fused_shards);
  out.Write(static_cast<uint8_t>(config.activation));
  WriteAll<uint32_t>(config.windows, out);
  for (const models::RopeConfig& rope : config.ropes)
    WriteAll<float>(models::MakeRopeTable(rope, 2).cos, out);
  for (const models::LayerConfig& layer : config.layer_configs) {
    out.Write<uint64_t>(layer.rope ? *layer.rope + 1 : 0);
    out.Write<uint64_t>(layer.window);
  }
  out.WriteBytes(std::as_bytes(std::span(config.head_rotation)));
  return artifact::Checksum(AsBytes(std::move(out).Take()));
}

artifact::Manifest ManifestOf(const models::ModelSource& source,
                              int64_t context) {
  artifact::Manifest manifest;
  manifest.producer = ProducerName();
  manifest.model_name = source.name;
  manifest.architecture = source.config.architecture;
  manifest.stage = "fp";
  manifest.vocab_size = static_cast<uint32_t>(source.config.vocab);
  manifest.layers = static_cast<uint32_t>(source.config.layers);
  manifest.context_tokens = static_cast<uint32_t>(context);
  manifest.mask_windows = source.config.windows;
  manifest.model_id = ModelId(source);
  manifest.keys_rotated = !source.config.head_rotation.empty();
  for (const models::LayerConfig& layer : source.config.layer_configs) {
    manifest.key_ropes.push_back(layer.rope ? static_cast<int32_t>(*layer.rope)
                                            : -1);
  }
  return manifest;
}

Status AddRopeTables(const models::ModelSource& source, int64_t context,
                     artifact::SegmentSink& sink,
                     artifact::Manifest& manifest) {
  for (const models::RopeConfig& rope : source.config.ropes) {
    const auto index = manifest.rope_tables.size();
    HX_ASSIGN_OR_RETURN(const RopeSegments rows,
                        AddRope(fmt::format("rope/{}", index),
                                models::MakeRopeTable(rope, context), sink));
    artifact::RopeTable entry{
        .cos_segment = rows.cos,
        .sin_segment = rows.sin,
        .positions = static_cast<uint32_t>(context),
        .half_dim = static_cast<uint32_t>(rope.rotary_dim / 2)};
    if (!rope.long_divisors.empty() && rope.original_positions < context) {
      HX_ASSIGN_OR_RETURN(
          const RopeSegments others,
          AddRope(fmt::format("rope/{}/long", index),
                  models::MakeRopeTable(rope, context, models::RopeSet::kLong),
                  sink));
      entry.long_prompts = artifact::LongRope{
          .above_tokens = static_cast<uint32_t>(rope.original_positions),
          .cos_segment = others.cos,
          .sin_segment = others.sin};
    }
    manifest.rope_tables.push_back(entry);
  }
  return OkStatus();
}

Status AddEmbedding(const models::ModelSource& source,
                    artifact::SegmentSink& sink, artifact::Manifest& manifest) {
  HX_ASSIGN_OR_RETURN(const ir::Constant table, models::EmbeddingTable(source));
  // No architecture has another order of rows.
  HX_CHECK(table.rows.empty());
  artifact::EmbeddingTable entry{
      .dtype = table.type.dtype,
      .width = static_cast<uint32_t>(source.config.hidden)};
  HX_ASSIGN_OR_RETURN(entry.segment,
                      sink.Add({.name = "embedding",
                                .kind = artifact::SegmentKind::kEmbedding,
                                .lifetime = artifact::Lifetime::kArtifact},
                               table.bytes));
  manifest.embedding = entry;
  manifest.weight_bytes += table.bytes.size();
  return OkStatus();
}

Status AddText(const TextAssets& text, artifact::SegmentSink& sink,
               artifact::Manifest& manifest) {
  if (text.tokenizer) {
    const std::string blob = SerializeTokenizer(*text.tokenizer);
    HX_ASSIGN_OR_RETURN(
        manifest.tokenizer_segment,
        sink.Add({"tokenizer", artifact::SegmentKind::kTokenizer},
                 AsBytes(blob)));
  }
  if (text.chat_template) {
    HX_ASSIGN_OR_RETURN(
        manifest.chat_template_segment,
        sink.Add({"chat_template", artifact::SegmentKind::kChatTemplate},
                 AsBytes(*text.chat_template)));
  }
  manifest.special_tokens = text.special_tokens;
  manifest.generation = text.generation;
  return OkStatus();
}

Result<std::string> TextSegment(const artifact::Artifact& artifact,
                                std::string_view name) {
  const auto index = artifact.FindSegment(name);
  if (index &&
      artifact.manifest().segments[*index].kind == artifact::SegmentKind::kText)
    return std::string(AsText(artifact.Segment(*index)));
  return Error{ErrorCode::kUsage,
               fmt::format("{}: expected an artifact with a segment {}, found "
                           "none; compile it again",
                           artifact.path(), name)};
}

std::string ProducerName() { return fmt::format("hexllm {}", kVersion); }

}  // namespace hexllm

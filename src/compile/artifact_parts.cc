#include "compile/artifact_parts.h"

#include <fmt/format.h>

#include <span>

#include "compile/version.h"
#include "models/rope_table.h"

namespace hexllm {

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
  manifest.mask_windows = {0};
  return manifest;
}

Status AddRopeTable(const models::ModelSource& source, int64_t context,
                    artifact::SegmentSink& sink, artifact::Manifest& manifest) {
  const models::RopeConfig& rope = source.config.rope;
  const models::RopeTableData table = models::MakeRopeTable(rope, context);
  artifact::RopeTable entry{
      .positions = static_cast<uint32_t>(context),
      .half_dim = static_cast<uint32_t>(rope.rotary_dim / 2)};
  HX_ASSIGN_OR_RETURN(
      entry.cos_segment,
      sink.Add({"rope/0/cos", artifact::SegmentKind::kRopeTable},
               std::as_bytes(std::span(table.cos))));
  HX_ASSIGN_OR_RETURN(
      entry.sin_segment,
      sink.Add({"rope/0/sin", artifact::SegmentKind::kRopeTable},
               std::as_bytes(std::span(table.sin))));
  manifest.rope_tables.push_back(entry);
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

std::string ProducerName() { return fmt::format("hexllm {}", kVersion); }

}  // namespace hexllm

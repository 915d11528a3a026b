#include "artifact/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "artifact/validate.h"
#include "base/quote.h"

namespace hexllm::artifact {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::string_view LogitsRowsName(LogitsRows rows) {
  switch (rows) {
    case LogitsRows::kNone:
      return "none";
    case LogitsRows::kLast:
      return "last";
    case LogitsRows::kAll:
      return "all";
  }
  return "unknown";
}

// "1.5 KiB" and the like; exact below 1024.
std::string HumanBytes(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double scaled = static_cast<double>(bytes);
  size_t unit = 0;
  while (scaled >= 1024 && unit + 1 < std::size(kUnits)) {
    scaled /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", scaled, unit == 0 ? 0 : 1, kUnits[unit]);
}

// ---- the KV cache, from the graph with the most past columns ----

struct KvSummary {
  uint64_t layers = 0;
  uint64_t bytes = 0;  // of all past columns
  DType dtype = DType::kF32;
};

std::optional<KvSummary> SummarizeKv(const Manifest& manifest) {
  std::map<uint32_t, KvSummary> by_step;
  for (const GraphEntry& graph : manifest.graphs) {
    if (graph.kind == GraphKind::kEvictor) continue;
    for (const IoSpec& io : graph.inputs) {
      const bool is_k = io.role.kind == RoleKind::kKIn;
      if (!is_k && io.role.kind != RoleKind::kVIn) continue;
      KvSummary& kv = by_step[graph.step_tokens];
      kv.layers += is_k ? 1 : 0;
      kv.bytes += StorageBytes(io.dtype, io.shape).value_or(0);
      kv.dtype = io.dtype;
    }
  }
  if (by_step.empty()) return std::nullopt;
  return by_step.begin()->second;
}

uint32_t KvBits(const KvSummary& kv) {
  return GetDTypeInfo(kv.dtype).block_bytes * 8;
}

// ---- text ----

// Consecutive inputs or outputs that differ only in their index take one line.
bool SameButIndex(const IoSpec& a, const IoSpec& b) {
  return a.role.kind == b.role.kind && a.role.name == b.role.name &&
         a.dtype == b.dtype && a.shape == b.shape && a.encoding == b.encoding;
}

std::string EncodingText(const IoSpec& io) {
  if (!io.encoding) return "";
  return fmt::format(", scale {} zero point {}", io.encoding->scale,
                     io.encoding->zero_point);
}

void PrintIos(Out out, const char* arrow, std::vector<IoSpec> ios) {
  std::stable_sort(ios.begin(), ios.end(),
                   [](const IoSpec& a, const IoSpec& b) {
                     return a.role.kind < b.role.kind;
                   });
  for (size_t i = 0; i < ios.size();) {
    size_t next = i + 1;
    while (next < ios.size() && SameButIndex(ios[i], ios[next])) ++next;
    std::string name = Printable(RoleToString(ios[i].role));
    if (next - i > 1) {
      name += " .. " + Printable(RoleToString(ios[next - 1].role));
    }
    fmt::format_to(out, "    {} {:<24} {} {}{}\n", arrow, name,
                   DTypeName(ios[i].dtype), ShapeToString(ios[i].shape),
                   EncodingText(ios[i]));
    i = next;
  }
}

void PrintGraph(Out out, const Manifest& manifest, const GraphEntry& graph) {
  fmt::format_to(out, "graph {} ({}, T = {}, C = {}, {} logits, {})\n",
                 Printable(graph.name), GraphKindName(graph.kind),
                 graph.step_tokens, graph.context_tokens,
                 LogitsRowsName(graph.logits_rows), Printable(graph.backend));
  if (graph.shard > 0) fmt::format_to(out, "    shard {}\n", graph.shard);
  fmt::format_to(out, "    program {}\n",
                 Printable(manifest.segments[graph.program].name));
  if (graph.simulator_program) {
    fmt::format_to(out, "    on x86  {}\n",
                   Printable(manifest.segments[*graph.simulator_program].name));
  }
  PrintIos(out, "in ", graph.inputs);
  PrintIos(out, "out", graph.outputs);
}

void PrintHead(Out out, const Artifact& artifact) {
  const Manifest& m = artifact.manifest();
  fmt::format_to(out, "artifact {}\n", Printable(artifact.path()));
  fmt::format_to(out, "  model      {} ({})\n", Printable(m.model_name),
                 Printable(m.architecture));
  fmt::format_to(out, "  made by    {}, stage {}, recipe {}\n",
                 Printable(m.producer), m.stage, Printable(m.recipe));
  fmt::format_to(out, "  size       {} layers, vocabulary {}, context {}\n",
                 m.layers, m.vocab_size, m.context_tokens);
  fmt::format_to(out, "  weights    {}\n", HumanBytes(m.weight_bytes));
  if (const auto kv = SummarizeKv(m)) {
    fmt::format_to(out, "  kv cache   {} ({} bit), {} layers, {}\n",
                   DTypeName(kv->dtype), KvBits(*kv), kv->layers,
                   HumanBytes(kv->bytes));
  }
  if (m.embedding) {
    fmt::format_to(out, "  embedding  {} [{},{}], looked up by the host\n",
                   DTypeName(m.embedding->dtype), m.vocab_size,
                   m.embedding->width);
  }
  if (const auto& shape = m.lookahead) {
    fmt::format_to(out, "  lookahead  ngram {}, window {}, gcap {}\n",
                   shape->ngram, shape->window, shape->guesses);
  }
  if (const auto& sink = m.attention_sink) {
    fmt::format_to(out, "  sink       keeps {} tokens, drops {} when full\n",
                   sink->sink_tokens, sink->evict_tokens);
  }
  fmt::format_to(out, "  tokenizer  {}, chat template {}\n",
                 m.tokenizer_segment ? "yes" : "no",
                 m.chat_template_segment ? "yes" : "no");
  for (size_t i = 0; i < m.mask_windows.size(); ++i) {
    fmt::format_to(
        out, "  mask[{}]    window {}\n", i,
        m.mask_windows[i] == 0 ? "all" : std::to_string(m.mask_windows[i]));
  }
}

void PrintSegments(Out out, const Manifest& manifest) {
  fmt::format_to(out, "segments\n  {:>14} {:>14}  {:<14} {}\n", "offset",
                 "bytes", "kind", "name");
  std::map<SegmentKind, uint64_t> totals;
  uint64_t total = 0;
  for (const SegmentInfo& segment : manifest.segments) {
    fmt::format_to(out, "  {:>14} {:>14}  {:<14} {}\n", segment.offset,
                   segment.bytes, SegmentKindName(segment.kind),
                   Printable(segment.name));
    totals[segment.kind] += segment.bytes;
    total += segment.bytes;
  }
  fmt::format_to(out, "total {} segments, {}", manifest.segments.size(),
                 HumanBytes(total));
  for (const auto& [kind, bytes] : totals) {
    fmt::format_to(out, ", {} {}", SegmentKindName(kind), HumanBytes(bytes));
  }
  fmt::format_to(out, "\n");
}

// ---- JSON ----

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json IoToJson(const IoSpec& io) {
  Json json = {{"role", RoleToString(io.role)},
               {"dtype", DTypeName(io.dtype)},
               {"shape", io.shape}};
  if (io.encoding) {
    json["scale"] = io.encoding->scale;
    json["zero_point"] = io.encoding->zero_point;
  }
  if (io.role.kind == RoleKind::kMask) {
    json["visible"] = io.mask_visible;
    json["hidden"] = io.mask_hidden;
  }
  return json;
}

Json GraphToJson(const Manifest& manifest, const GraphEntry& graph) {
  Json inputs = Json::array();
  for (const IoSpec& io : graph.inputs) inputs.push_back(IoToJson(io));
  Json outputs = Json::array();
  for (const IoSpec& io : graph.outputs) outputs.push_back(IoToJson(io));
  return {{"name", graph.name},
          {"kind", GraphKindName(graph.kind)},
          {"step_tokens", graph.step_tokens},
          {"context_tokens", graph.context_tokens},
          {"logits_rows", LogitsRowsName(graph.logits_rows)},
          {"shard", graph.shard},
          {"backend", graph.backend},
          {"program", manifest.segments[graph.program].name},
          {"simulator_program",
           graph.simulator_program
               ? Json(manifest.segments[*graph.simulator_program].name)
               : Json(nullptr)},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)}};
}

Json GenerationToJson(const GenerationDefaults& generation) {
  return {{"end_ids", generation.end_ids},
          {"bos_id", OrNull(generation.bos_id)},
          {"temperature", OrNull(generation.temperature)},
          {"top_k", OrNull(generation.top_k)},
          {"top_p", OrNull(generation.top_p)},
          {"min_p", OrNull(generation.min_p)},
          {"repetition_penalty", OrNull(generation.repetition_penalty)}};
}

Json SegmentToJson(const SegmentInfo& segment) {
  return {{"name", segment.name},
          {"kind", SegmentKindName(segment.kind)},
          {"offset", segment.offset},
          {"bytes", segment.bytes},
          {"xxh3", segment.checksum
                       ? Json(fmt::format("{:016x}", *segment.checksum))
                       : Json(nullptr)}};
}

Json RopeToJson(const Manifest& manifest, const RopeTable& rope) {
  Json json = {{"cos", manifest.segments[rope.cos_segment].name},
               {"sin", manifest.segments[rope.sin_segment].name},
               {"positions", rope.positions},
               {"half_dim", rope.half_dim}};
  if (const auto& rows = rope.long_prompts) {
    json["long_prompts"] = {{"above_tokens", rows->above_tokens},
                            {"cos", manifest.segments[rows->cos_segment].name},
                            {"sin", manifest.segments[rows->sin_segment].name}};
  }
  return json;
}

Json EmbeddingToJson(const Manifest& manifest) {
  if (!manifest.embedding) return nullptr;
  return {{"segment", manifest.segments[manifest.embedding->segment].name},
          {"dtype", DTypeName(manifest.embedding->dtype)},
          {"width", manifest.embedding->width}};
}

Json LookaheadToJson(const std::optional<LookaheadShape>& shape) {
  if (!shape) return nullptr;
  return {{"ngram", shape->ngram},
          {"window", shape->window},
          {"gcap", shape->guesses}};
}

Json SinkToJson(const std::optional<SinkSettings>& sink) {
  if (!sink) return nullptr;
  return {{"sink_tokens", sink->sink_tokens},
          {"evict_tokens", sink->evict_tokens}};
}

Json HeadToJson(const Artifact& artifact) {
  const Manifest& m = artifact.manifest();
  Json kv = nullptr;
  if (const auto summary = SummarizeKv(m)) {
    kv = {{"dtype", DTypeName(summary->dtype)},
          {"bits", KvBits(*summary)},
          {"layers", summary->layers},
          {"bytes", summary->bytes}};
  }
  return {{"path", artifact.path()},
          {"producer", m.producer},
          {"model_name", m.model_name},
          {"architecture", m.architecture},
          {"stage", m.stage},
          {"recipe", m.recipe},
          {"weight_bytes", m.weight_bytes},
          {"model_id", fmt::format("{:016x}", m.model_id)},
          {"vocab_size", m.vocab_size},
          {"layers", m.layers},
          {"context_tokens", m.context_tokens},
          {"kv_cache", std::move(kv)},
          {"embedding", EmbeddingToJson(m)},
          {"attention_sink", SinkToJson(m.attention_sink)},
          {"lookahead", LookaheadToJson(m.lookahead)},
          {"has_tokenizer", m.tokenizer_segment.has_value()},
          {"has_chat_template", m.chat_template_segment.has_value()},
          {"mask_windows", m.mask_windows}};
}

}  // namespace

std::string DescribeArtifact(const Artifact& artifact) {
  std::string text;
  const Out out(text);
  PrintHead(out, artifact);
  for (const GraphEntry& graph : artifact.manifest().graphs) {
    PrintGraph(out, artifact.manifest(), graph);
  }
  PrintSegments(out, artifact.manifest());
  return text;
}

Json ArtifactToJson(const Artifact& artifact) {
  const Manifest& m = artifact.manifest();
  Json json = HeadToJson(artifact);
  json["rope_tables"] = Json::array();
  for (const RopeTable& rope : m.rope_tables) {
    json["rope_tables"].push_back(RopeToJson(m, rope));
  }
  json["special_tokens"] = Json::object();
  for (const NamedText& token : m.special_tokens) {
    json["special_tokens"][token.name] = token.text;
  }
  json["generation"] = GenerationToJson(m.generation);
  json["graphs"] = Json::array();
  for (const GraphEntry& graph : m.graphs) {
    json["graphs"].push_back(GraphToJson(m, graph));
  }
  json["segments"] = Json::array();
  for (const SegmentInfo& segment : m.segments) {
    json["segments"].push_back(SegmentToJson(segment));
  }
  return json;
}

}  // namespace hexllm::artifact

#include "artifact/manifest_codec.h"

#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <vector>

#include "artifact/format.h"
#include "artifact/manifest_generated.h"
#include "base/quote.h"

namespace hexllm::artifact {
namespace {

template <typename T>
using Offset = flatbuffers::Offset<T>;

template <typename T>
using TableVector = flatbuffers::Vector<Offset<T>>;

Error Malformed(std::string what) {
  return Error{ErrorCode::kBadInput, std::move(what)};
}

// ---- plain structs to FlatBuffers ----

template <typename T>
flatbuffers::Optional<T> ToFb(std::optional<T> value) {
  return value ? flatbuffers::Optional<T>(*value) : flatbuffers::nullopt;
}

Offset<fb::Io> EncodeIo(flatbuffers::FlatBufferBuilder& fbb, const IoSpec& io) {
  const auto name = io.role.name.empty() ? Offset<flatbuffers::String>()
                                         : fbb.CreateString(io.role.name);
  const auto shape = fbb.CreateVector(io.shape);
  fb::IoBuilder builder(fbb);
  builder.add_role(static_cast<uint8_t>(io.role.kind));
  builder.add_index(io.role.index);
  if (!name.IsNull()) builder.add_name(name);
  builder.add_dtype(static_cast<uint8_t>(io.dtype));
  builder.add_shape(shape);
  if (io.encoding) {
    const fb::Encoding encoding(io.encoding->scale, io.encoding->zero_point);
    builder.add_encoding(&encoding);
  }
  builder.add_mask_visible(io.mask_visible);
  builder.add_mask_hidden(io.mask_hidden);
  return builder.Finish();
}

Offset<TableVector<fb::Io>> EncodeIos(flatbuffers::FlatBufferBuilder& fbb,
                                      const std::vector<IoSpec>& ios) {
  std::vector<Offset<fb::Io>> out;
  for (const IoSpec& io : ios) out.push_back(EncodeIo(fbb, io));
  return fbb.CreateVector(out);
}

Offset<fb::Graph> EncodeGraph(flatbuffers::FlatBufferBuilder& fbb,
                              const GraphEntry& graph) {
  const auto name = fbb.CreateString(graph.name);
  const auto backend = fbb.CreateString(graph.backend);
  const auto inputs = EncodeIos(fbb, graph.inputs);
  const auto outputs = EncodeIos(fbb, graph.outputs);
  fb::GraphBuilder builder(fbb);
  builder.add_name(name);
  builder.add_kind(static_cast<uint8_t>(graph.kind));
  builder.add_step_tokens(graph.step_tokens);
  builder.add_context_tokens(graph.context_tokens);
  builder.add_logits_rows(static_cast<uint8_t>(graph.logits_rows));
  builder.add_shard(graph.shard);
  builder.add_backend(backend);
  builder.add_program(graph.program);
  builder.add_inputs(inputs);
  builder.add_outputs(outputs);
  if (graph.simulator_program)
    builder.add_simulator_program(*graph.simulator_program);
  return builder.Finish();
}

Offset<fb::Segment> EncodeSegment(flatbuffers::FlatBufferBuilder& fbb,
                                  const SegmentInfo& segment) {
  return fb::CreateSegment(fbb, fbb.CreateString(segment.name),
                           static_cast<uint8_t>(segment.kind), segment.offset,
                           segment.bytes, segment.checksum.value_or(0));
}

Offset<fb::RopeTable> EncodeRope(flatbuffers::FlatBufferBuilder& fbb,
                                 const RopeTable& rope) {
  Offset<fb::LongRope> long_prompts;
  if (const auto& rows = rope.long_prompts) {
    long_prompts = fb::CreateLongRope(fbb, rows->above_tokens,
                                      rows->cos_segment, rows->sin_segment);
  }
  return fb::CreateRopeTable(fbb, rope.cos_segment, rope.sin_segment,
                             rope.positions, rope.half_dim, long_prompts);
}

Offset<fb::EmbeddingTable> EncodeEmbedding(
    flatbuffers::FlatBufferBuilder& fbb,
    const std::optional<EmbeddingTable>& table) {
  if (!table) return {};
  return fb::CreateEmbeddingTable(
      fbb, table->segment, static_cast<uint8_t>(table->dtype), table->width);
}

Offset<fb::Lookahead> EncodeLookahead(
    flatbuffers::FlatBufferBuilder& fbb,
    const std::optional<LookaheadShape>& shape) {
  if (!shape) return {};
  return fb::CreateLookahead(fbb, shape->ngram, shape->window, shape->guesses);
}

Offset<fb::SinkSettings> EncodeSink(flatbuffers::FlatBufferBuilder& fbb,
                                    const std::optional<SinkSettings>& sink) {
  if (!sink) return {};
  return fb::CreateSinkSettings(fbb, sink->sink_tokens, sink->evict_tokens);
}

Offset<fb::NamedText> EncodeNamedText(flatbuffers::FlatBufferBuilder& fbb,
                                      const NamedText& named) {
  const auto name = fbb.CreateString(named.name);
  return fb::CreateNamedText(fbb, name, fbb.CreateString(named.text));
}

Offset<fb::Generation> EncodeGeneration(flatbuffers::FlatBufferBuilder& fbb,
                                        const GenerationDefaults& generation) {
  return fb::CreateGeneration(
      fbb, fbb.CreateVector(generation.end_ids), ToFb(generation.bos_id),
      ToFb(generation.temperature), ToFb(generation.top_k),
      ToFb(generation.top_p), ToFb(generation.min_p),
      ToFb(generation.repetition_penalty));
}

// Encodes every element of `in` with `encode` and returns the vector of tables.
template <typename T, typename Encode>
auto EncodeAll(flatbuffers::FlatBufferBuilder& fbb, const std::vector<T>& in,
               Encode encode) {
  std::vector<decltype(encode(fbb, in.front()))> out;
  for (const T& item : in) out.push_back(encode(fbb, item));
  return fbb.CreateVector(out);
}

// ---- FlatBuffers to plain structs; the buffer has passed the verifier ----

template <typename T>
std::optional<T> FromFb(flatbuffers::Optional<T> value) {
  return value ? std::optional<T>(*value) : std::nullopt;
}

// An absent string is an empty one.
Result<std::string> DecodeString(const flatbuffers::String* text,
                                 const char* what) {
  if (text == nullptr) return std::string();
  if (text->size() > kMaxNameBytes) {
    return Malformed(fmt::format("{}: expected at most {} bytes, found {}",
                                 what, kMaxNameBytes, text->size()));
  }
  return text->str();
}

template <typename T>
std::vector<T> DecodeScalars(const flatbuffers::Vector<T>* in) {
  return in == nullptr ? std::vector<T>()
                       : std::vector<T>(in->begin(), in->end());
}

// Decodes every table of `in` (null = none) with `decode`.
template <typename T, typename F>
Result<std::vector<T>> DecodeAll(const TableVector<F>* in,
                                 Result<T> (*decode)(const F&)) {
  std::vector<T> out;
  if (in == nullptr) return out;
  for (const F* item : *in) {
    HX_ASSIGN_OR_RETURN(T decoded, decode(*item));
    out.push_back(std::move(decoded));
  }
  return out;
}

// `number` as an enumerator of E when it is at most `last`.
template <typename E>
Result<E> DecodeEnum(uint8_t number, E last, const char* what) {
  if (number > static_cast<uint8_t>(last)) {
    return Malformed(fmt::format("{}: expected at most {}, found {}", what,
                                 static_cast<uint8_t>(last), number));
  }
  return static_cast<E>(number);
}

Result<DType> DecodeDType(uint8_t number) {
  if (number < AllDTypes().size()) return static_cast<DType>(number);
  return Malformed(fmt::format("unknown element type {}", number));
}

Result<IoSpec> DecodeIo(const fb::Io& in) {
  IoSpec io;
  const auto kind = RoleKindFromNumber(in.role());
  if (!kind) return Malformed(fmt::format("unknown role {}", in.role()));
  io.role.kind = *kind;
  io.role.index = in.index();
  HX_ASSIGN_OR_RETURN(io.role.name, DecodeString(in.name(), "tap name"));
  HX_ASSIGN_OR_RETURN(io.dtype, DecodeDType(in.dtype()));
  if (in.shape()->size() > kMaxRank) {
    return Malformed(fmt::format("shape: expected at most {} axes, found {}",
                                 kMaxRank, in.shape()->size()));
  }
  // The verifier lets elements of 8 bytes stand at any multiple of 4.
  io.shape.resize(in.shape()->size());
  if (!io.shape.empty()) {
    std::memcpy(io.shape.data(), in.shape()->Data(),
                io.shape.size() * sizeof(int64_t));
  }
  if (in.encoding() != nullptr) {
    io.encoding = IoEncoding{.scale = in.encoding()->scale(),
                             .zero_point = in.encoding()->zero_point()};
  }
  io.mask_visible = in.mask_visible();
  io.mask_hidden = in.mask_hidden();
  return io;
}

Result<GraphEntry> DecodeGraphBody(const fb::Graph& in, std::string name) {
  GraphEntry graph;
  graph.name = std::move(name);
  const auto kind = GraphKindFromNumber(in.kind());
  if (!kind) return Malformed(fmt::format("unknown graph kind {}", in.kind()));
  graph.kind = *kind;
  graph.step_tokens = in.step_tokens();
  graph.context_tokens = in.context_tokens();
  HX_ASSIGN_OR_RETURN(
      graph.logits_rows,
      DecodeEnum(in.logits_rows(), LogitsRows::kAll, "logits rows"));
  graph.shard = in.shard();
  HX_ASSIGN_OR_RETURN(graph.backend, DecodeString(in.backend(), "backend"));
  graph.program = in.program();
  graph.simulator_program = FromFb(in.simulator_program());
  HX_ASSIGN_OR_RETURN(graph.inputs, DecodeAll<IoSpec>(in.inputs(), DecodeIo));
  HX_ASSIGN_OR_RETURN(graph.outputs, DecodeAll<IoSpec>(in.outputs(), DecodeIo));
  return graph;
}

Result<GraphEntry> DecodeGraph(const fb::Graph& in) {
  HX_ASSIGN_OR_RETURN(std::string name, DecodeString(in.name(), "graph name"));
  auto graph = DecodeGraphBody(in, name);
  if (!graph.ok())
    return std::move(graph).error().With("graph " + Quoted(name));
  return graph;
}

Result<SegmentInfo> DecodeSegment(const fb::Segment& in) {
  SegmentInfo segment;
  HX_ASSIGN_OR_RETURN(segment.name, DecodeString(in.name(), "segment name"));
  HX_ASSIGN_OR_RETURN(
      segment.kind,
      DecodeEnum(in.kind(), SegmentKind::kEmbedding, "segment kind"));
  segment.offset = in.offset();
  segment.bytes = in.bytes();
  segment.checksum = in.checksum();
  return segment;
}

Result<RopeTable> DecodeRope(const fb::RopeTable& in) {
  RopeTable rope{.cos_segment = in.cos_segment(),
                 .sin_segment = in.sin_segment(),
                 .positions = in.positions(),
                 .half_dim = in.half_dim()};
  if (const fb::LongRope* rows = in.long_prompts()) {
    rope.long_prompts = LongRope{.above_tokens = rows->above_tokens(),
                                 .cos_segment = rows->cos_segment(),
                                 .sin_segment = rows->sin_segment()};
  }
  return rope;
}

Result<std::optional<EmbeddingTable>> DecodeEmbedding(
    const fb::EmbeddingTable* in) {
  if (in == nullptr) return std::optional<EmbeddingTable>();
  EmbeddingTable table{.segment = in->segment(), .width = in->width()};
  HX_ASSIGN_OR_RETURN(table.dtype, DecodeDType(in->dtype()));
  return std::optional(table);
}

Result<NamedText> DecodeNamedText(const fb::NamedText& in) {
  NamedText named;
  HX_ASSIGN_OR_RETURN(named.name,
                      DecodeString(in.name(), "special token's name"));
  HX_ASSIGN_OR_RETURN(named.text, DecodeString(in.text(), "special token"));
  return named;
}

GenerationDefaults DecodeGeneration(const fb::Generation* in) {
  GenerationDefaults out;
  if (in == nullptr) return out;
  out.end_ids = DecodeScalars(in->end_ids());
  out.bos_id = FromFb(in->bos_id());
  out.temperature = FromFb(in->temperature());
  out.top_k = FromFb(in->top_k());
  out.top_p = FromFb(in->top_p());
  out.min_p = FromFb(in->min_p());
  out.repetition_penalty = FromFb(in->repetition_penalty());
  return out;
}

Result<Manifest> DecodeRoot(const fb::Manifest& in) {
  Manifest out;
  HX_ASSIGN_OR_RETURN(out.producer, DecodeString(in.producer(), "producer"));
  HX_ASSIGN_OR_RETURN(out.model_name,
                      DecodeString(in.model_name(), "model name"));
  HX_ASSIGN_OR_RETURN(out.architecture,
                      DecodeString(in.architecture(), "architecture"));
  HX_ASSIGN_OR_RETURN(out.stage, DecodeString(in.stage(), "stage"));
  HX_ASSIGN_OR_RETURN(out.recipe, DecodeString(in.recipe(), "recipe"));
  out.vocab_size = in.vocab_size();
  out.layers = in.layers();
  out.context_tokens = in.context_tokens();
  out.mask_windows = DecodeScalars(in.mask_windows());
  HX_ASSIGN_OR_RETURN(out.rope_tables,
                      DecodeAll<RopeTable>(in.rope_tables(), DecodeRope));
  HX_ASSIGN_OR_RETURN(out.embedding, DecodeEmbedding(in.embedding()));
  HX_ASSIGN_OR_RETURN(out.graphs,
                      DecodeAll<GraphEntry>(in.graphs(), DecodeGraph));
  out.tokenizer_segment = FromFb(in.tokenizer_segment());
  out.chat_template_segment = FromFb(in.chat_template_segment());
  HX_ASSIGN_OR_RETURN(
      out.special_tokens,
      DecodeAll<NamedText>(in.special_tokens(), DecodeNamedText));
  out.generation = DecodeGeneration(in.generation());
  HX_ASSIGN_OR_RETURN(out.segments,
                      DecodeAll<SegmentInfo>(in.segments(), DecodeSegment));
  out.weight_bytes = in.weight_bytes();
  out.model_id = in.model_id();
  if (const auto* shape = in.lookahead())
    out.lookahead = {shape->ngram(), shape->window(), shape->guesses()};
  out.key_ropes = DecodeScalars(in.key_ropes());
  out.keys_rotated = in.keys_rotated();
  if (const auto* sink = in.attention_sink())
    out.attention_sink = {sink->sink_tokens(), sink->evict_tokens()};
  return out;
}

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  flatbuffers::FlatBufferBuilder fbb;
  const auto producer = fbb.CreateString(manifest.producer);
  const auto model_name = fbb.CreateString(manifest.model_name);
  const auto architecture = fbb.CreateString(manifest.architecture);
  const auto stage = fbb.CreateString(manifest.stage);
  const auto recipe = fbb.CreateString(manifest.recipe);
  const auto windows = fbb.CreateVector(manifest.mask_windows);
  const auto ropes = EncodeAll(fbb, manifest.rope_tables, EncodeRope);
  const auto graphs = EncodeAll(fbb, manifest.graphs, EncodeGraph);
  const auto special_tokens =
      EncodeAll(fbb, manifest.special_tokens, EncodeNamedText);
  const auto generation = EncodeGeneration(fbb, manifest.generation);
  const auto segments = EncodeAll(fbb, manifest.segments, EncodeSegment);
  const auto embedding = EncodeEmbedding(fbb, manifest.embedding);
  const auto lookahead = EncodeLookahead(fbb, manifest.lookahead);
  const auto key_ropes = fbb.CreateVector(manifest.key_ropes);
  const auto sink = EncodeSink(fbb, manifest.attention_sink);
  fb::FinishManifestBuffer(
      fbb, fb::CreateManifest(
               fbb, producer, model_name, architecture, stage, recipe,
               manifest.vocab_size, manifest.layers, manifest.context_tokens,
               windows, ropes, graphs, ToFb(manifest.tokenizer_segment),
               ToFb(manifest.chat_template_segment), special_tokens, generation,
               segments, manifest.weight_bytes, embedding, manifest.model_id,
               lookahead, key_ropes, sink, manifest.keys_rotated));
  return std::string(reinterpret_cast<const char*>(fbb.GetBufferPointer()),
                     fbb.GetSize());
}

Result<Manifest> DecodeManifest(ByteSpan bytes) {
  if (bytes.size() > kMaxManifestBytes) {
    return Malformed(fmt::format("expected at most {} bytes, found {}",
                                 kMaxManifestBytes, bytes.size()));
  }
  // FlatBuffers needs aligned memory; a heap block has it.
  const std::vector<std::byte> aligned(bytes.begin(), bytes.end());
  const auto* data = reinterpret_cast<const uint8_t*>(aligned.data());
  flatbuffers::Verifier verifier(data, aligned.size(), kMaxManifestDepth,
                                 kMaxManifestTables);
  // The verifier reads the identifier before it checks the size.
  if (aligned.size() < 2 * sizeof(flatbuffers::uoffset_t) ||
      !fb::VerifyManifestBuffer(verifier)) {
    return Malformed("not a well-formed FlatBuffer of this format");
  }
  return DecodeRoot(*fb::GetManifest(data));
}

}  // namespace hexllm::artifact

// What an artifact (.hxl) says about itself, as plain data: the contract
// between the compiler and the runtime. artifact/manifest.fbs is its form on
// disk; reader and writer translate. Everything is addressed by role; the
// runtime needs no model name. Axes: T step tokens, C context, P = C - T, V
// vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/graph_role.h"

namespace hexllm::artifact {

// What the bytes of a segment are. Stored: append, never reorder.
enum class SegmentKind : uint8_t {
  kWeights,       // one tensor for the CPU engine (rows as the plan says)
  kCpuPlan,       // FlatBuffers plan of one graph, backend/cpu/plan.fbs
  kQnnContext,    // QNN context binary
  kRopeTable,     // f32 [positions, R/2]
  kTokenizer,     // text/tokenizer blob
  kChatTemplate,  // Jinja text, UTF-8
  kText,          // recipe, versions, ...: UTF-8 for people and tools
  kEmbedding,     // rows that the host looks tokens up in
};

// A 4 KiB-aligned part of the file.
struct SegmentInfo {
  std::string name;  // unique: "weights/model.layers.0.mlp.up_proj.weight",
                     // "plan/kv", "tokenizer"
  SegmentKind kind = SegmentKind::kText;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  // XXH3-64 of the bytes. Unset in memory: hashing a borrowed checkpoint would
  // read all of it.
  std::optional<uint64_t> checksum;
};

// value = scale * (code - zero_point), per tensor. Absent for float tensors.
struct IoEncoding {
  float scale = 1;
  int32_t zero_point = 0;
  bool operator==(const IoEncoding&) const = default;
};

// One input or output of a graph.
struct IoSpec {
  Role role;
  DType dtype = DType::kF32;
  Shape shape;
  std::optional<IoEncoding> encoding;
  // kMask only: the bit patterns (in `dtype`, little-endian) of a visible and
  // of a hidden column.
  uint64_t mask_visible = 0;
  uint64_t mask_hidden = 0;
};

using hexllm::LogitsRows;

struct GraphEntry {
  std::string name;  // unique: "prefill_128", "kv"
  GraphKind kind = GraphKind::kKv;
  uint32_t step_tokens = 1;     // T
  uint32_t context_tokens = 1;  // C
  LogitsRows logits_rows = LogitsRows::kAll;
  uint32_t shard = 0;    // place in the order of execution among the graphs of
                         // the same kind and T
  std::string backend;   // "cpu", "htp"
  uint32_t program = 0;  // segment: the plan or context binary
  // "htp" only: segment with a context binary that x86 can load, where that of
  // `program` cannot be.
  std::optional<uint32_t> simulator_program = {};
  std::vector<IoSpec> inputs;
  std::vector<IoSpec> outputs;
};

// The rows of a RoPE table for long prompts (longrope).
struct LongRope {
  uint32_t above_tokens = 0;  // prompts with more tokens use these
  uint32_t cos_segment = 0;
  uint32_t sin_segment = 0;
};

// cos and sin of one RoPE flavour for positions 0..; f32 [positions, half_dim]
// each. Graph inputs rope_cos[i] and rope_sin[i] take rows of table i.
struct RopeTable {
  uint32_t cos_segment = 0;
  uint32_t sin_segment = 0;
  uint32_t positions = 0;
  uint32_t half_dim = 0;  // R/2
  // In place of the others for all positions of a sequence whose first prompt
  // is long.
  std::optional<LongRope> long_prompts = {};
};

// The rows that graphs with the input embedding are given: [V,width], as the
// checkpoint stores them.
struct EmbeddingTable {
  uint32_t segment = 0;
  DType dtype = DType::kF32;  // one that base/dequantize.h reads
  uint32_t width = 0;         // M
};

// What the lookahead graph was made for: n-grams of N = `ngram` tokens (at
// least 2), W = `window` columns and G = `guesses` n-grams to verify (at least
// 1 each). Its T is (W + G)(N - 1).
struct LookaheadShape {
  uint32_t ngram = 0;
  uint32_t window = 0;
  uint32_t guesses = 0;
  bool operator==(const LookaheadShape&) const = default;
};

// What is dropped when the context is full: of the C - 1 tokens in the cache
// the first S = `sink_tokens` stay, the B = `evict_tokens` after them go, the
// others take their places (Xiao et al. 2023, "Efficient Streaming Language
// Models with Attention Sinks"). Both at least 1, S + B < C - 1.
struct SinkSettings {
  uint32_t sink_tokens = 0;
  uint32_t evict_tokens = 0;
  bool operator==(const SinkSettings&) const = default;
};

// Defaults of generation, from generation_config and the chat template.
struct GenerationDefaults {
  std::vector<int32_t> end_ids;  // any of these ends an answer
  std::optional<int32_t> bos_id;
  // Unset = not said by the checkpoint.
  std::optional<float> temperature;  // 0 = greedy (also when the checkpoint
                                     // says do_sample = false)
  std::optional<int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
};

// A special token as chat templates know it: name "bos_token", text "<s>".
struct NamedText {
  std::string name;
  std::string text;
  bool operator==(const NamedText&) const = default;
};

struct Manifest {
  std::string producer;    // "hexllm 0.1.0"
  std::string model_name;  // general.name or the folder's name, for people
  std::string architecture;
  std::string stage;   // "fp", "qdq", "device"
  std::string recipe;  // name, for people
  uint32_t vocab_size = 0;
  uint32_t layers = 0;
  uint32_t context_tokens = 0;  // C of all graphs
  // Attention window of mask[j]: 0 = all earlier positions, w = keys with i - w
  // < j <= i.
  std::vector<uint32_t> mask_windows;
  std::vector<RopeTable> rope_tables;
  // Set when a graph has the input embedding.
  std::optional<EmbeddingTable> embedding = {};
  // Set when there is a lookahead graph, of which there is one at most.
  std::optional<LookaheadShape> lookahead = {};
  std::vector<GraphEntry> graphs;
  std::optional<uint32_t> tokenizer_segment;
  std::optional<uint32_t> chat_template_segment;
  std::vector<NamedText> special_tokens;  // variables of the chat template
  GenerationDefaults generation;
  std::vector<SegmentInfo> segments;  // filled by the writer
  // Of all weights at the widths that the recipe gives them, without padding:
  // what recipes are compared by.
  uint64_t weight_bytes = 0;
  // Of the checkpoint and what its configuration and the recipe's rotations
  // make of it, whatever else the recipe says and the target is: keys and
  // values of one artifact mean the same in another with this id.
  uint64_t model_id = 0;
  // [L] The RoPE table that rotates the keys of each layer; -1 = they are not
  // rotated. Empty: not known (older artifacts), then there is no sink.
  std::vector<int32_t> key_ropes = {};
  // Keys are cached as k H: H [D,D] with -1 to the number of common bits of i
  // and j over sqrt(D) at i, j (R3 of SpinQuant). H is its own inverse.
  bool keys_rotated = false;
  // Set when a full context drops tokens. Then evictor graphs (T = C - 1, one
  // for each shard that has rotated keys) rotate keys to other positions: k_in
  // and k_out [G,D,T], rope_cos and rope_sin [T,R/2] say how far.
  std::optional<SinkSettings> attention_sink = {};
};

}  // namespace hexllm::artifact

// What a graph of a model is for, and what each of its inputs and outputs
// means. The compiler writes roles into the artifact and the runtime binds
// buffers by them, never by position in a list. Used by ir, artifact, backend,
// runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hexllm {

// Kinds of graphs of one decoder; they share weights. Stored in artifacts:
// append, never reorder.
enum class GraphKind : uint8_t {
  kPrefill,    // T = prefill_ar_len tokens of the prompt a step
  kKv,         // T = 1, one new token a step
  kLookahead,  // T = (W + G)(N - 1)
  kEvictor,    // T = C - 1 cached keys to other positions; P = T for its k_in
};

// Roles of graph inputs and outputs. Axes: T step tokens, C context, P = C - T
// past columns, G KV heads, D head dim, M model dim, V vocabulary, R rotary
// dims. Stored in artifacts: append, never reorder.
enum class RoleKind : uint8_t {
  kToken,      // in  [T] i32
  kEmbedding,  // in  [T,M], instead of kToken when the host looks tokens up
  kRopeCos,    // in  [T,R/2], index = rope table
  kRopeSin,    // in  [T,R/2], index = rope table
  kMask,  // in  [T,C], index = distinct window; columns: P past, then the T new
          // tokens
  kKIn,   // in  [G,D,P], index = layer
  kVIn,   // in  [G,P,D], index = layer
  kLogits,     // out [rows,V]
  kKOut,       // out [G,D,T], index = layer, only the new columns
  kVOut,       // out [G,T,D], index = layer, only the new columns
  kHiddenIn,   // in  [T,M], between shards
  kHiddenOut,  // out [T,M], between shards
  kTap,        // out any shape, named: an inner value of a debug compile
};

// Which rows of a step a graph's logits output has. Stored in artifacts:
// append, never reorder.
enum class LogitsRows : uint8_t { kNone, kLast, kAll };

struct Role {
  RoleKind kind = RoleKind::kToken;
  int32_t index = 0;
  std::string name = {};  // kTap only

  bool operator==(const Role&) const = default;
};

bool IsInputRole(RoleKind kind);
// True when the kind has one instance per layer, table, window ("k_in[3]"); the
// others print without index.
bool IsIndexedRole(RoleKind kind);

// "token", "k_in[3]", "tap[model.layers.0.mlp]"; and back (nothing when
// malformed).
std::string RoleToString(const Role& role);
std::optional<Role> ParseRole(std::string_view text);

std::string_view GraphKindName(
    GraphKind kind);  // "prefill", "kv", "lookahead", "evictor"
std::optional<GraphKind> ParseGraphKind(std::string_view text);
// Range checks for numbers read from a file.
std::optional<GraphKind> GraphKindFromNumber(uint64_t number);
std::optional<RoleKind> RoleKindFromNumber(uint64_t number);

}  // namespace hexllm

// Makes room in a full KV cache without an end (Xiao et al. 2023, "Efficient
// Streaming Language Models with Attention Sinks"): the first S tokens stay,
// the B after them are dropped, and the others move down by B positions. Used
// by the prompt processor and the decode steps, through MakeRoom. Which graphs
// rotate keys is compile/evictor.h.
//
// A key was rotated for the position at which it was made. Rotating it again
// for each eviction would round it each time, so that its error would grow;
// here it is always rotated from the code that was first stored, by the whole
// way from its first position. S = 2, B = 3, tokens by their first position:
//
//                 position    0  1  2  3  4  5  6  7  8
//   full          keys        0  1  2  3  4  5  6  7  8
//   evicted       stored      0  1  5  6  7  8            as first stored
//                 turned by   -  -  3  3  3  3
//                 keys        0  1  5' 6' 7' 8'           what steps read
//   full again    keys        0  1  5' 6' 7' 8' 6  7  8   three new tokens
//   evicted       stored      0  1  8  6  7  8
//                 turned by   -  -  6  3  3  3
//
// The stored codes take as much memory as the keys in the cache. Values have no
// position: they only move. Sliding windows count the new positions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "artifact/artifact.h"
#include "backend/engine.h"
#include "base/status.h"
#include "runtime/kv_manager.h"
#include "runtime/rope.h"

namespace hexllm {

struct AttentionSinkConfig {
  std::shared_ptr<const artifact::Artifact> artifact;
  Engine* engine = nullptr;  // borrowed, as is the cache
  KvManager* kv = nullptr;
};

// Not thread-safe.
class AttentionSink {
 public:
  // Loads the evictor graphs and allocates what they need. kBadInput when they
  // are not for this cache; errors of the engine. Null when the artifact has no
  // attention sink.
  static Result<std::unique_ptr<AttentionSink>> Create(
      const AttentionSinkConfig& config);

  uint32_t sink_tokens() const { return settings_.sink_tokens; }
  uint32_t evict_tokens() const { return settings_.evict_tokens; }
  uint32_t evictions() const { return evictions_; }
  // The first columns of the cache, which were turned.
  uint32_t turned() const { return turned_; }

  // The length of the sequence's first prompt (longrope).
  void ChooseRope(uint32_t prompt_tokens) { prompt_tokens_ = prompt_tokens; }
  // The cache has been cut to its first `tokens` tokens.
  void Rewind(uint32_t tokens);

  // Drops B tokens of the cache, which has more than S + B. Errors of the
  // engine, after which keys are undefined.
  Status Evict();

  // What session files keep of the first turned() columns: their first
  // positions, and the stored codes of `layer`, rows of capacity columns.
  // Layers whose keys are not rotated have no codes.
  std::span<const uint32_t> positions() const {
    return std::span(positions_).first(turned_);
  }
  std::span<std::byte> Stored(size_t layer);
  // Takes what Stored and positions were; the codes are in place.
  void Restore(std::span<const uint32_t> positions);

 private:
  struct Keys {
    size_t layer = 0;
    uint64_t column_bytes = 0;
    Buffer stored;  // [G,D,capacity]
    ExecutableGraph* graph = nullptr;
    size_t output = 0;  // k_out among the graph's
  };
  struct Rope {
    Buffer buffer;
    ShiftFiller filler;
  };

  explicit AttentionSink(const AttentionSinkConfig& config);
  Status Load(size_t index);
  Status LoadKeys(ExecutableGraph& graph, size_t input);
  Status LoadRope(ExecutableGraph& graph, size_t input);
  Status BindCache();
  void KeepCodes(Keys& keys, uint32_t tokens);

  AttentionSinkConfig config_;
  artifact::SinkSettings settings_;
  std::vector<Keys> keys_;
  std::vector<Rope> ropes_;
  // Destroyed before the buffers that they are bound to.
  std::vector<std::unique_ptr<ExecutableGraph>> graphs_;
  std::vector<uint32_t> positions_;  // [capacity]
  std::vector<uint32_t> shifts_;     // [capacity]
  uint32_t turned_ = 0;
  uint32_t prompt_tokens_ = 0;
  uint32_t evictions_ = 0;
};

}  // namespace hexllm

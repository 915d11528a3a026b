// Runs one graph of the decoder (or its shards in order): fills tokens or their
// embeddings, RoPE rows and masks, executes, and shows the logits and the new
// KV columns. Used by the prompt processor and the token generator. It decides
// nothing: which tokens to run, and which columns to keep, is the caller's
// business.
//
// A step of n < T tokens is padded at the front, so that the last row is always
// the last token. T = 4, n = 2, 5 tokens in the cache:
//
//   row         0    1    2      3
//   token       0    0    ids[0] ids[1]
//   position    0    0    5      6         StepRows.begin = 2
//
// The tokens may also be a tree, of which several follow the same one: several
// continuations of the text in one step, of which the caller commits a path.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "backend/engine.h"
#include "base/status.h"
#include "runtime/embedding.h"
#include "runtime/kv_manager.h"
#include "runtime/mask.h"
#include "runtime/rope.h"
#include "runtime/step_graphs.h"

namespace hexllm {

// An inner value of a debug compile (role tap) after a step. Valid during the
// call.
struct TapView {
  std::string_view name;
  const Shape& shape;
  std::span<const float> values;  // decoded, row-major
  uint32_t first_row;             // rows before are padding
};
// An error ends the step and is returned as it is.
using TapSink = std::function<Status(const TapView& tap)>;

// A token of a step and the one that it follows: the number of an earlier token
// of the step, or kNoParent for the last token of the cache.
struct StepToken {
  int32_t id = 0;
  uint32_t parent = kNoParent;
};

// What a runner works on; engine and cache are borrowed and outlive it.
struct RunnerConfig {
  std::shared_ptr<const artifact::Artifact> artifact;
  Engine* engine = nullptr;
  KvManager* kv = nullptr;
  TapSink on_tap = {};  // called after each step for each tap; may be empty
};

// Not thread-safe. Nothing allocates after Create.
class DecoderRunner {
 public:
  // Loads the shards of `step` (from FindStepGraphs), allocates and binds all
  // inputs and outputs. Errors of the engine name the graph; kBadInput when
  // shards disagree on an input that they share.
  static Result<std::unique_ptr<DecoderRunner>> Create(
      const RunnerConfig& config, const StepGraph& step);

  uint32_t step_tokens() const { return step_.step_tokens; }  // T
  uint32_t past_columns() const { return past_columns_; }     // P
  LogitsRows logits_rows() const { return step_.logits_rows; }

  // Chooses the RoPE rows for a sequence whose first prompt has so many tokens
  // (longrope): to be called before its first Step.
  void ChooseRope(uint32_t prompt_tokens);
  // True when two prompts use the same rows.
  bool HasSameRope(uint32_t prompt_tokens, uint32_t other_tokens) const;

  // Runs `ids` (1..T of them, ids of the vocabulary) at the positions after
  // the cache's tokens, of which there are at most P (checked). Does not change
  // the cache but may rearrange it. Errors are the engine's.
  Status Step(std::span<const int32_t> ids);

  // The same for a tree. Each token stands one position after the one that it
  // follows; its logits are those that it would have at the end of the text
  // that leads to it.
  Status StepTree(std::span<const StepToken> tokens);

  // Appends the columns of the last Step's tokens to the cache; or of one token
  // of the last StepTree, which follows the last one of the cache.
  void Commit();
  void Commit(uint32_t token);

  // Logits [V] of the last Step's token number `token` (0 = the first of
  // `ids`), which must have some: all tokens with LogitsRows::kAll, the last
  // one with kLast (checked). Valid until the next call of Step or Logits.
  std::span<const float> Logits(uint32_t token);

 private:
  // One buffer and what it holds; shards with an equal input share it.
  struct Io {
    artifact::IoSpec spec;
    Buffer buffer;
  };
  explicit DecoderRunner(const RunnerConfig& config, const StepGraph& step);

  Status LoadShard(size_t index);
  Status BindShard(ExecutableGraph& graph);
  Result<std::span<std::byte>> InputMemory(const artifact::IoSpec& spec);
  Result<std::span<std::byte>> OutputMemory(const artifact::IoSpec& spec);
  Result<std::span<std::byte>> NewIo(const artifact::IoSpec& spec);
  void AddFiller(const artifact::IoSpec& spec, std::span<std::byte> memory);
  void FillInputs();
  void PlaceRows(std::span<const StepToken> tokens);
  Status BindCache();
  Status ShowTaps();

  RunnerConfig config_;
  StepGraph step_;
  uint32_t past_columns_ = 0;
  std::vector<std::unique_ptr<Io>> ios_;
  // Graphs are destroyed before the buffers that they are bound to.
  std::vector<std::unique_ptr<ExecutableGraph>> graphs_;
  std::vector<RopeFiller> ropes_;
  std::vector<MaskWriter> masks_;
  std::span<std::byte> tokens_;  // i32 [T]; empty when embeddings go in
  std::optional<EmbeddingFiller> embedding_;
  const Io* logits_ = nullptr;  // [rows,V]
  std::vector<const Io*> taps_;
  std::vector<float> tap_values_;  // the largest tap that is not f32
  // An input that reads the cache.
  struct CacheInput {
    ExecutableGraph* graph;
    size_t index;
    RoleKind kind;
    size_t layer;
  };
  std::vector<CacheInput> cache_inputs_;
  StepColumns columns_;
  std::vector<StepToken> chain_;  // [T], of Step
  std::vector<int32_t> ids_;      // [T] by row, as are the next two
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> parents_;      // rows
  std::vector<uint32_t> row_numbers_;  // 0..T-1
  std::vector<float> logits_row_;      // [V], unless the output is f32
  uint32_t first_row_ = 0;             // of the last Step
};

}  // namespace hexllm

// Token sequences run through the target-lowered float graphs of a model on the
// CPU engine, in blocks with the KV cache, with inner values as taps. Used by
// compile/calibrate, compile/layer_inputs and compile/layer_probe. Weights stay
// in the mapped checkpoint.
#pragma once

#include <functional>
#include <memory>

#include "artifact/artifact.h"
#include "base/digest.h"
#include "base/progress.h"
#include "base/status.h"
#include "compile/calibration_set.h"
#include "ir/graph.h"
#include "models/model_source.h"
#include "runtime/decoder_runner.h"

namespace hexllm {

// What is run; borrowed.
struct TappedRun {
  const models::ModelSource& source;
  const TokenSequences& sequences;  // not empty
  int threads = 0;                  // 0 = one per physical core
  ProgressSink& progress;
};

// The longest sequence.
size_t LongestSequence(const TokenSequences& sequences);
// All tokens.
int64_t TotalTokens(const TokenSequences& sequences);

// `module`, graphs of `source` that the CPU's lowering takes, as an artifact in
// memory without text.
Result<std::shared_ptr<const artifact::Artifact>> LowerInMemory(
    const models::ModelSource& source, const ir::Module& module);

// The graphs, to each of which `add_taps` gave its taps.
Result<std::shared_ptr<const artifact::Artifact>> BuildTapped(
    const TappedRun& run, const std::function<void(ir::Graph&)>& add_taps);

// Adds what runs (programs, weights, tables) and on which ids. Reads all
// weights.
void AddToKey(const artifact::Artifact& tapped, const TokenSequences& sequences,
              Hasher& key);

// Runs everything; `step` is what progress calls it. No step has padding: rows
// of a tap begin at 0.
Status RunTapped(const TappedRun& run,
                 const std::shared_ptr<const artifact::Artifact>& tapped,
                 std::string_view step, const TapSink& on_tap);

}  // namespace hexllm

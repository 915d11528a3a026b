// Token sequences run through the target-lowered float graphs of a model on the
// CPU engine, in blocks with the KV cache, with inner values as taps. Used by
// compile/quantize, compile/calibrate, compile/layer_inputs and
// compile/layer_probe. Weights stay in the mapped checkpoint.
#pragma once

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

// What is run; all but the graphs is borrowed.
struct TappedRun {
  std::shared_ptr<const artifact::Artifact> graphs;  // of BuildTapped
  const TokenSequences& sequences;                   // not empty
  int threads = 0;  // 0 = one per physical core
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

// The float graphs as targets with encodings get them, with all observed values
// and all inputs of linears as taps, for sequences of up to `longest` tokens.
Result<std::shared_ptr<const artifact::Artifact>> BuildTapped(
    const models::ModelSource& source, size_t longest);

// Adds what runs (programs, weights, tables) and on which ids. Reads all
// weights.
void AddToKey(const TappedRun& run, Hasher& key);

// Runs everything; `step` is what `progress` calls it. No step has padding:
// rows of a tap begin at 0.
Status RunTapped(const TappedRun& run, std::string_view step,
                 ProgressSink& progress, const TapSink& on_tap);

}  // namespace hexllm

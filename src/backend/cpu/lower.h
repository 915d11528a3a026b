// Turns verified IR graphs into plans for the CPU engine. Host only.
#pragma once

#include <vector>

#include "artifact/manifest.h"
#include "artifact/segment_sink.h"
#include "base/progress.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::cpu {

// Writes the weights (each constant once, shared by all graphs) and one plan
// per graph to `sink`, and returns the manifest entries of the graphs in module
// order. Weights without an encoding go through unchanged (rows put in order);
// those that need no reordering are handed over as views of the checkpoint
// (Lifetime::kArtifact). Weights with one are written as its codes. Inputs and
// outputs of a graph have the form of their value's encoding. kUnsupported
// names graph, node and reason.
Result<std::vector<artifact::GraphEntry>> Lower(const ir::Module& module,
                                                artifact::SegmentSink& sink,
                                                ProgressSink& progress);

}  // namespace hexllm::cpu

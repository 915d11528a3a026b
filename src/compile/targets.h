// The table of compile targets: how a name becomes a lowering. Adding a
// backend: one row in targets.cc.
#pragma once

#include <string_view>
#include <vector>

#include "artifact/manifest.h"
#include "artifact/segment_sink.h"
#include "base/progress.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm {

// The pipeline of passes/ whose graphs static recipes give encodings to,
// whatever runs them.
inline constexpr std::string_view kStaticPipeline = "htp";

// kUnsupported naming the targets that there are.
Status CheckTarget(std::string_view target);

// Lowers `module` for a target that CheckTarget accepts; see the backend's
// lower.h.
Result<std::vector<artifact::GraphEntry>> LowerForTarget(
    std::string_view target, const ir::Module& module,
    artifact::SegmentSink& sink, ProgressSink& progress);

}  // namespace hexllm

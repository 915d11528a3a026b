// What the manifest says about a lowered graph, for every backend: its entry,
// and the form of its inputs and outputs. Used by the lowerings.
#pragma once

#include <string_view>

#include "artifact/manifest.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm {

// The manifest's description of a graph input or output, in the form of its
// value's encoding: f16, codes of one scale, or the type itself. kUnsupported
// for the encoding of a mask whose highest code is not 0.
Result<artifact::IoSpec> MakeIoSpec(const ir::Graph& graph,
                                    const ir::GraphIo& io);

// The manifest's entry of a graph, all but its program. kUnsupported as above,
// and for logits of neither all rows nor the last.
Result<artifact::GraphEntry> MakeEntry(const ir::Graph& graph,
                                       std::string_view backend);

}  // namespace hexllm

// A copy of an artifact with one more segment: what is found out by running it.
// Used by cli/ (compile --certify).
#pragma once

#include <string>

#include "artifact/artifact.h"
#include "artifact/segment_sink.h"
#include "base/bytes.h"
#include "base/status.h"

namespace hexllm::artifact {

// Writes `path`, whole or not at all: `artifact` with `extra` behind its
// segments. kUsage when it has a segment of that name already; kEnvironment
// when the disk refuses.
Status WriteExtended(const Artifact& artifact, const NewSegment& extra,
                     ByteSpan bytes, const std::string& path);

}  // namespace hexllm::artifact

// What is in an artifact, for people and for tools. Used by `hexllm inspect`.
// Prints nothing itself.
#pragma once

#include <string>

#include "artifact/artifact.h"
#include "base/json.h"

namespace hexllm::artifact {

// Several lines, the last one ended: model, graphs with their inputs and
// outputs, KV cache, segments, totals. Names from the file are made printable.
std::string DescribeArtifact(const Artifact& artifact);

// The same facts and all of the manifest as an object. Its keys are an
// interface: docs/formats.md lists them.
Json ArtifactToJson(const Artifact& artifact);

}  // namespace hexllm::artifact

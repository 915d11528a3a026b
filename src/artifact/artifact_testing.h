// Helpers of this folder's tests: a small artifact with two layers, steps of 4
// and 1 tokens, a context of 8 and every kind of table. They stop the process
// when they fail.
#pragma once

#include <memory>
#include <string>

#include "artifact/artifact.h"
#include "artifact/segment_sink.h"
#include "base/status.h"

namespace hexllm::artifact {

// Adds the segments of the test artifact to `sink` and returns its manifest
// (without segment list). Fails as `sink` does.
Result<Manifest> AddTestSegments(SegmentSink& sink);

// The test artifact in memory.
std::shared_ptr<const Artifact> MakeTestArtifact();

// The bytes of the test artifact's file.
std::string MakeTestFile();

}  // namespace hexllm::artifact

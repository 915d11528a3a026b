// The parts of ValidateManifest (artifact.h). Internal to this folder. Each
// function trusts what the ones above it have checked, and fails with kBadInput
// that names the segment, graph or field.
#pragma once

#include <string>
#include <utility>

#include "artifact/manifest.h"
#include "base/status.h"

namespace hexllm::artifact {

inline Error Invalid(std::string what) {
  return Error{ErrorCode::kBadInput, std::move(what)};
}

// Names, kinds, offsets: in order, aligned, without overlap. Not whether they
// lie in the file: the reader knows that.
Status ValidateSegments(const Manifest& manifest);
// One graph against the manifest's sizes and tables: its program, and of each
// input and output the role, element type, encoding and shape.
Status ValidateGraph(const Manifest& manifest, const GraphEntry& graph);
// What graphs must agree on: unique names, complete shards, equal KV caches and
// hidden states.
Status ValidateSteps(const Manifest& manifest);

// Fails unless `segment` is an index into the manifest's segments and that
// segment is of `kind`. `what` names the reference in the message.
Status ValidateReference(const Manifest& manifest, uint32_t segment,
                         SegmentKind kind, const char* what);

// "weights", "cpu plan", ...
std::string_view SegmentKindName(SegmentKind kind);

}  // namespace hexllm::artifact

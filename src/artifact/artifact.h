// An opened artifact: its manifest and its segments, from a .hxl file or
// straight from the compiler's memory. Used by the runtime, engines, inspect.
// Everything in the manifest is validated when the artifact is opened; users
// trust it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/manifest.h"
#include "base/bytes.h"
#include "base/status.h"

namespace hexllm::artifact {

// Owns (or keeps alive) all bytes. Shared and immutable: thread-safe. Spans
// must not outlive it.
class Artifact {
 public:
  // Maps `path`, verifies header, manifest (FlatBuffers verifier, then ranges
  // and references), and the checksums of all segments but weights, QNN
  // contexts and embeddings. kBadInput names the file and the segment.
  static Result<std::shared_ptr<const Artifact>> Open(const std::string& path);

  virtual ~Artifact() = default;
  // "(memory)" for an unsaved one.
  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  // Bytes of segment `index` (< manifest().segments.size(), checked).
  virtual ByteSpan Segment(uint32_t index) const = 0;
  // Checks the checksum of segment `index`, or of all; reads every byte.
  // kBadInput names the first segment that is altered. An artifact in memory
  // has no checksums and always passes.
  Status Verify(uint32_t index) const;
  Status VerifyAll() const;
  std::optional<uint32_t> FindSegment(std::string_view name) const;
  // The graph with this kind and T (shard 0), or null.
  const GraphEntry* FindGraph(GraphKind kind, uint32_t step_tokens) const;

 protected:
  std::string path_;
  Manifest manifest_;
};

// Checks the references and ranges of a manifest against its own segment list;
// used by Open and by the writers.
Status ValidateManifest(const Manifest& manifest);

}  // namespace hexllm::artifact

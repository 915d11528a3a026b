// The two segment sinks and how they become an artifact. Used by compile/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/segment_list.h"
#include "artifact/segment_sink.h"
#include "base/output_file.h"
#include "base/status.h"

namespace hexllm::artifact {

// Streams segments into a temporary file beside `path`; Finish writes the
// manifest and renames. Same input, same bytes.
class FileSink final : public SegmentSink {
 public:
  static Result<FileSink> Create(const std::string& path);
  Result<uint32_t> Add(NewSegment segment, ByteSpan bytes) override;
  // Fills manifest.segments, validates, writes; once. Nothing is left behind
  // when this fails or is never called.
  Status Finish(Manifest manifest);

 private:
  explicit FileSink(OutputFile file) : file_(std::move(file)) {}
  OutputFile file_;
  SegmentList segments_;
};

// One segment in memory.
struct MemorySegment {
  ByteSpan bytes;
  // Null when borrowed; aligned to kSegmentAlignment.
  std::shared_ptr<std::byte[]> owned;
};

// Keeps segments in memory; borrows those that say Lifetime::kArtifact.
class MemorySink final : public SegmentSink {
 public:
  Result<uint32_t> Add(NewSegment segment, ByteSpan bytes) override;
  // Validates the manifest (kBadInput as ValidateManifest). `keep_alive` owns
  // what borrowed segments point into (the checkpoint).
  Result<std::shared_ptr<const Artifact>> Finish(
      Manifest manifest, std::shared_ptr<const void> keep_alive);

 private:
  SegmentList segments_;
  std::vector<MemorySegment> stored_;
};

}  // namespace hexllm::artifact

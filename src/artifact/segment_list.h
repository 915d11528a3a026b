// Where the segments of an artifact stand: the one place that assigns indices
// and offsets and keeps names unique. Used by both segment sinks, so that an
// artifact in memory has the layout that its file would have.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "artifact/format.h"
#include "artifact/manifest.h"
#include "artifact/segment_sink.h"
#include "base/bytes.h"

namespace hexllm::artifact {

class SegmentList {
 public:
  // Appends a segment of bytes.size() bytes at next_offset() and returns its
  // index. A repeated or empty name is a bug (checked).
  uint32_t Append(NewSegment segment, ByteSpan bytes,
                  std::optional<uint64_t> checksum);
  // Where the next segment, or the manifest, starts.
  uint64_t next_offset() const { return next_offset_; }
  std::vector<SegmentInfo> Take() && { return std::move(segments_); }

 private:
  std::vector<SegmentInfo> segments_;
  std::unordered_set<std::string> names_;
  // The header has the first page to itself.
  uint64_t next_offset_ = kSegmentAlignment;
};

}  // namespace hexllm::artifact

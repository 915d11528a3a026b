#include "artifact/extend.h"

#include <fmt/format.h>

#include <utility>

#include "artifact/writer.h"
#include "base/quote.h"

namespace hexllm::artifact {

Status WriteExtended(const Artifact& artifact, const NewSegment& extra,
                     ByteSpan bytes, const std::string& path) {
  if (artifact.FindSegment(extra.name)) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: expected no segment {}, found one",
                             artifact.path(), Quoted(extra.name))};
  }
  HX_ASSIGN_OR_RETURN(FileSink sink, FileSink::Create(path));
  Manifest manifest = artifact.manifest();
  // In the same order: references between them stay as they are.
  for (uint32_t i = 0; i < manifest.segments.size(); ++i) {
    const SegmentInfo& segment = manifest.segments[i];
    HX_RETURN_IF_ERROR(
        sink.Add({segment.name, segment.kind}, artifact.Segment(i)).status());
  }
  HX_RETURN_IF_ERROR(sink.Add(extra, bytes).status());
  return sink.Finish(std::move(manifest));
}

}  // namespace hexllm::artifact

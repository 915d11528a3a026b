#include "artifact/artifact.h"

#include <fmt/format.h>

#include "artifact/format.h"
#include "artifact/validate.h"
#include "base/quote.h"

namespace hexllm::artifact {

Status Artifact::Verify(uint32_t index) const {
  const ByteSpan bytes = Segment(index);
  const SegmentInfo& segment = manifest_.segments[index];
  if (!segment.checksum || Checksum(bytes) == *segment.checksum) {
    return OkStatus();
  }
  return Invalid(fmt::format(
      "{}: segment {}: it is damaged (wrong checksum); copy the file again",
      path_, Quoted(segment.name)));
}

Status Artifact::VerifyAll() const {
  for (uint32_t i = 0; i < manifest_.segments.size(); ++i) {
    HX_RETURN_IF_ERROR(Verify(i));
  }
  return OkStatus();
}

std::optional<uint32_t> Artifact::FindSegment(std::string_view name) const {
  for (uint32_t i = 0; i < manifest_.segments.size(); ++i) {
    if (manifest_.segments[i].name == name) return i;
  }
  return std::nullopt;
}

const GraphEntry* Artifact::FindGraph(GraphKind kind,
                                      uint32_t step_tokens) const {
  for (const GraphEntry& graph : manifest_.graphs) {
    if (graph.kind == kind && graph.step_tokens == step_tokens &&
        graph.shard == 0) {
      return &graph;
    }
  }
  return nullptr;
}

}  // namespace hexllm::artifact

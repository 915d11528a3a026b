#include "artifact/segment_list.h"

#include <limits>
#include <utility>

#include "base/check.h"

namespace hexllm::artifact {

uint32_t SegmentList::Append(NewSegment segment, ByteSpan bytes,
                             std::optional<uint64_t> checksum) {
  HX_CHECK(!segment.name.empty() && names_.insert(segment.name).second);
  HX_CHECK(segments_.size() < std::numeric_limits<uint32_t>::max());
  const auto index = static_cast<uint32_t>(segments_.size());
  segments_.push_back(SegmentInfo{.name = std::move(segment.name),
                                  .kind = segment.kind,
                                  .offset = next_offset_,
                                  .bytes = bytes.size(),
                                  .checksum = checksum});
  const auto end = CheckedAdd(next_offset_, bytes.size());
  HX_CHECK(end);
  const auto next = CheckedAlignUp(*end, kSegmentAlignment);
  HX_CHECK(next);
  next_offset_ = *next;
  return index;
}

}  // namespace hexllm::artifact

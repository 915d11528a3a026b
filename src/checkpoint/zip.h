// Zip archives whose members are stored, not compressed: a span of bytes in,
// views of the members out. PyTorch writes its checkpoints so. Used by
// checkpoint/pytorch.cc. Not for archives in general: what is compressed or
// encrypted is refused, so nothing can expand.
// Source: PKWARE APPNOTE.TXT 6.3, sections 4.3 to 4.5 (zip64 included).
#pragma once

#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace hexllm {

// A member. Both views lie in the archive.
struct ZipMember {
  std::string_view name;
  ByteSpan data;
};

// The members, sorted by name, unique. Every member lies inside the archive
// before its directory, and none overlap. kBadInput for damage (a truncated
// archive has lost its directory, which stands at the end); kUnsupported naming
// a member that is compressed or encrypted, and for archives of several parts.
// Checksums are not compared: that would read all weights. Messages do not name
// the file: the caller adds it.
Result<std::vector<ZipMember>> ParseZip(ByteSpan archive);

}  // namespace hexllm

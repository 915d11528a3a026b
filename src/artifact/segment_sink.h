// Where the compiler puts segments, one after the other: a file (streamed,
// nothing is kept in memory) or memory. Used by compile/ and by lowerings. Not
// thread-safe.
#pragma once

#include <string>

#include "artifact/manifest.h"
#include "base/bytes.h"
#include "base/status.h"

namespace hexllm::artifact {

// How long the bytes given to SegmentSink::Add live.
enum class Lifetime {
  kCall,      // until Add returns: a memory sink copies them
  kArtifact,  // as long as the artifact (a mapped checkpoint): a memory sink
              // only borrows them
};

struct NewSegment {
  std::string name;
  SegmentKind kind;
  Lifetime lifetime = Lifetime::kCall;
};

class SegmentSink {
 public:
  virtual ~SegmentSink() = default;
  // Stores one segment and returns its index. kEnvironment when the disk
  // refuses; a repeated name is a bug (checked).
  virtual Result<uint32_t> Add(NewSegment segment, ByteSpan bytes) = 0;
};

}  // namespace hexllm::artifact

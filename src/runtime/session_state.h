// A session's cache to and from session files. Used by Session. The file is
// runtime/session_file.h.
#pragma once

#include <cstdint>

#include "artifact/artifact.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/status.h"
#include "runtime/sequence.h"
#include "runtime/session_file.h"

namespace hexllm {

// Where to and what beside the sequence.
struct SaveRequest {
  OutputFile& file;
  uint32_t prompt_tokens = 0;
  const Json& conversation;
};

// Writes `sequence` of `artifact` and commits the file. kUsage when no token
// was run, kEnvironment when the disk refuses.
Status SaveSequence(const artifact::Artifact& artifact, Sequence& sequence,
                    const SaveRequest& request);

// kUnsupported when the session is of another model than `manifest`, or of the
// same one with another cache; kUsage when it has more columns than the
// cache of `sequence` holds, or needs an attention sink that is not there;
// kBadInput for ids outside the vocabulary.
Status CheckFits(const SavedSession& saved, const artifact::Manifest& manifest,
                 const Sequence& sequence);

// Makes the saved session, which CheckFits accepts, the sequence. Keys and
// values in another form than the cache's are decoded, and encoded as the
// cache's graphs say.
void RestoreSequence(const SavedSession& saved,
                     const artifact::Manifest& manifest, Sequence& sequence);

}  // namespace hexllm

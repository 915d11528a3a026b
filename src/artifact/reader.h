// Opens an artifact whose bytes are at hand. Artifact::Open is this over a
// mapped file; the fuzz target and tests call it with bytes of their own.
#pragma once

#include <memory>
#include <string>

#include "artifact/artifact.h"
#include "base/bytes.h"
#include "base/status.h"

namespace hexllm::artifact {

// `bytes` is the whole file and `owner` keeps it alive. `path` names it in
// messages. Errors as Artifact::Open.
Result<std::shared_ptr<const Artifact>> ParseArtifact(
    ByteSpan bytes, std::string path, std::shared_ptr<const void> owner);

}  // namespace hexllm::artifact

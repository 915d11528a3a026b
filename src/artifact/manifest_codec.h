// Manifest (plain structs) to and from its FlatBuffers form, manifest.fbs. Used
// by the reader and the file writer. Knows nothing of the file around it and
// checks only what the form itself can get wrong: see ValidateManifest.
#pragma once

#include <string>

#include "artifact/manifest.h"
#include "base/bytes.h"
#include "base/status.h"

namespace hexllm::artifact {

// The same manifest gives the same bytes.
std::string EncodeManifest(const Manifest& manifest);

// `bytes` may have any alignment and any content. kBadInput when they are no
// well-formed manifest: FlatBuffers structure, enumerators, string and shape
// lengths. References and sizes are not checked here.
Result<Manifest> DecodeManifest(ByteSpan bytes);

}  // namespace hexllm::artifact

// The parts of an artifact that are not graphs. Used by compile/compiler and
// compile/calibrate, which make artifacts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "artifact/artifact.h"
#include "artifact/manifest.h"
#include "artifact/segment_sink.h"
#include "base/status.h"
#include "compile/text_assets.h"
#include "models/model_source.h"

namespace hexllm {

// Which model this is, for artifacts and sessions: by the names, types and
// first bytes of its tensors and by its configuration.
uint64_t ModelId(const models::ModelSource& source);

// A manifest that says which model this is; stage "fp", no graphs yet.
// `context` is C.
artifact::Manifest ManifestOf(const models::ModelSource& source,
                              int64_t context);

// The RoPE tables of the model for positions 0 .. context - 1.
Status AddRopeTables(const models::ModelSource& source, int64_t context,
                     artifact::SegmentSink& sink, artifact::Manifest& manifest);

// The embedding table as the checkpoint stores it.
Status AddEmbedding(const models::ModelSource& source,
                    artifact::SegmentSink& sink, artifact::Manifest& manifest);

// Tokenizer, chat template, special tokens, defaults of generation.
Status AddText(const TextAssets& text, artifact::SegmentSink& sink,
               artifact::Manifest& manifest);

// A segment of text; kUsage when there is none of that name.
Result<std::string> TextSegment(const artifact::Artifact& artifact,
                                std::string_view name);

// The text of the version that goes into artifacts: "hexllm 0.1.0".
std::string ProducerName();

}  // namespace hexllm

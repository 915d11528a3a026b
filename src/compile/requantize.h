// What an artifact keeps of how it was quantized, so that its qdq stage can be
// made again from its checkpoint: the recipe, the ids that it was calibrated on
// and the chip whose rounding it has. Used by compile/compiler, which writes
// it, and by commands that show the qdq stage of a device artifact.
#pragma once

#include <string>

#include "artifact/artifact.h"
#include "artifact/segment_sink.h"
#include "base/status.h"
#include "compile/compiler.h"

namespace hexllm {

// The text segments "recipe", as quant::RecipeToJson has it, and "calibration":
//   {"soc": "SM8750", "sequences": [[1, 2, 3], [4, 5]]}
struct QuantizationRecord {
  std::string recipe;  // JSON
  std::string soc;
  TokenSequences sequences;  // none where the recipe needs no ranges
};
Status AddQuantizationRecord(const QuantizationRecord& record,
                             artifact::SegmentSink& sink);

// `options` with recipe, calibration, chip, context and stage such that
// compiling the checkpoint of `artifact`, a device one, gives its qdq stage.
// kBadInput for a record that is missing or damaged.
Result<CompileOptions> RequantizeOptions(const artifact::Artifact& artifact,
                                         CompileOptions options);

// The same for the float graph of an artifact that quantizes, with the
// rotations and channel factors of its recipe: each value then means the same
// in both. Of a context that is at least the artifact's where factors or values
// inside (taps) need its calibration.
Result<CompileOptions> FloatOptions(const artifact::Artifact& artifact,
                                    CompileOptions options);

// kBadInput naming the first cache whose encodings differ between
// `artifact` and `made`, which RequantizeOptions and its checkpoint gave: other
// flags read the checkpoint, or another version made the artifact.
Status CheckSameEncodings(const artifact::Artifact& artifact,
                          const artifact::Artifact& made);

}  // namespace hexllm

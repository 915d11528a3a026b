// The table of compile targets: how a name becomes a lowering. Adding a
// backend: one row in targets.cc.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/manifest.h"
#include "artifact/segment_sink.h"
#include "backend/htp/lower.h"
#include "base/digest.h"
#include "base/file_cache.h"
#include "base/progress.h"
#include "base/status.h"
#include "ir/graph.h"
#include "models/decoder.h"

namespace hexllm {

// The pipeline of passes/ whose graphs static recipes give encodings to,
// whatever runs them.
inline constexpr std::string_view kStaticPipeline = "htp";

// What is compiled for.
struct TargetOptions {
  std::string name = "cpu";
  std::string soc = "SM8750";    // htp: the chip; cpu: whose rounding qdq has
  bool soc_is_named = false;     // by the user
  std::string qnn_lib_dir = {};  // htp: the folder of libQnnHtp.so
  htp::ContextUse use = htp::ContextUse::kDevice;
  // htp: as in htp::LowerOptions.
  const FileCache* cache = nullptr;
  std::optional<uint64_t> max_memory = {};
  std::function<void()> release_weights = {};
};

// kUsage naming the targets that there are, and for an unknown chip.
Status CheckTarget(const TargetOptions& target);
// Whether the target can hold and compile `module`; see htp::CheckSize.
Status CheckTargetSize(const TargetOptions& target, const ir::Module& module);
// Who looks tokens up when nobody says. cpu: the graph, which reads the tied
// head's rows. htp: the host, since a table in the context has 16 bits a number
// and the checkpoint's are often smaller, and the context has 4 GiB at most.
models::EmbeddingPlace DefaultEmbedding(const TargetOptions& target);
// False when the chip, of any target, has no arithmetic in half precision.
bool HasHalf(const TargetOptions& target);
// True when the target runs graphs of kStaticPipeline alone.
bool NeedsStaticRecipe(const TargetOptions& target);

// Of what the lowering hangs on beside the module; see htp::TargetDigest. For
// the htp only (checked).
Result<Digest> TargetDigest(const TargetOptions& target);

// What the target's chip loses in sums, written into graphs with static
// encodings that the CPU is to run as the chip would (htp/lower_rounding.h).
// Nothing for the chip itself.
void ModelRounding(const TargetOptions& target, ir::Module& module);

// Lowers `module` for a target that CheckTarget accepts; see the backend's
// lower.h.
Result<std::vector<artifact::GraphEntry>> LowerForTarget(
    const TargetOptions& target, const ir::Module& module,
    artifact::SegmentSink& sink, ProgressSink& progress);

}  // namespace hexllm

// The attention sink's part of an artifact: graphs that rotate cached keys to
// other positions, made from what the manifest says of the cache. So they can
// be added to an artifact without its checkpoint. Used by compile/compiler and
// cli/. How they are run: runtime/attention_sink.h.
#pragma once

#include <string>

#include "artifact/manifest.h"
#include "artifact/segment_sink.h"
#include "base/progress.h"
#include "base/status.h"
#include "compile/targets.h"
#include "ir/graph.h"

namespace hexllm {

// kUsage when the settings leave a context of `context` no room for others.
Status CheckSink(const artifact::SinkSettings& settings, int64_t context);

// One graph for each shard of the manifest's kv graph that has rotated keys,
// T = C - 1 = N. For each such layer
//
//   k_in [G,D,N] - transpose - rope - convert - transpose - k_out [G,D,N]
//
// where k_in and k_out are in the form of the cache, and what lies between is
// finer: 16 bits over the same range. Where keys are cached as k H
// (Manifest::keys_rotated), a product with H stands before and behind rope, and
// between them 16 bits hold all that can be. kUnsupported for caches of other
// types than f32, f16, u8 and u16, kBadInput where there is no H of D.
Result<ir::Module> BuildEvictor(const artifact::Manifest& manifest);

// Builds and lowers them and adds them to `manifest`, whose graphs of steps are
// there already, with `settings`. Errors as above and the lowering's.
Status AddEvictor(const TargetOptions& target,
                  const artifact::SinkSettings& settings,
                  artifact::SegmentSink& sink, artifact::Manifest& manifest);

// Copies the artifact at `path` to `out_path`, with an attention sink of
// `settings` in the place of the one that it may have. `target` is what the
// artifact was compiled for. kUnsupported for an artifact that does not say
// which keys are rotated.
Status ReplaceEvictor(const std::string& path, const std::string& out_path,
                      const TargetOptions& target,
                      const artifact::SinkSettings& settings);

}  // namespace hexllm

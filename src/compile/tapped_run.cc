#include "compile/tapped_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "artifact/manifest_codec.h"
#include "artifact/writer.h"
#include "backend/cpu/lower.h"
#include "backend/engines.h"
#include "compile/artifact_parts.h"
#include "compile/targets.h"
#include "models/decoder.h"
#include "passes/pipeline.h"
#include "runtime/session.h"

namespace hexllm {
namespace {

// T of the blocks. Larger ones cost memory for the taps and gain little.
constexpr size_t kBlockTokens = 32;

// Full blocks first, then what is left token by token: no step has padding.
Status RunSequence(Session& session, std::span<const int32_t> ids) {
  session.Reset();
  const size_t whole = ids.size() / kBlockTokens * kBlockTokens;
  if (whole > 0) HX_RETURN_IF_ERROR(session.Prefill(ids.first(whole)));
  for (size_t i = whole; i < ids.size(); ++i)
    HX_RETURN_IF_ERROR(session.Prefill(ids.subspan(i, 1)));
  return OkStatus();
}

}  // namespace

size_t LongestSequence(const TokenSequences& sequences) {
  size_t longest = 0;
  for (const auto& ids : sequences) longest = std::max(longest, ids.size());
  return longest;
}

int64_t TotalTokens(const TokenSequences& sequences) {
  int64_t total = 0;
  for (const auto& ids : sequences) total += std::ssize(ids);
  return total;
}

Result<std::shared_ptr<const artifact::Artifact>> LowerInMemory(
    const models::ModelSource& source, const ir::Module& module) {
  const int64_t context = module.graphs.front().context_tokens;
  artifact::MemorySink sink;
  artifact::Manifest manifest = ManifestOf(source, context);
  HX_RETURN_IF_ERROR(AddRopeTables(source, context, sink, manifest));
  NullProgress quiet;
  HX_ASSIGN_OR_RETURN(manifest.graphs, cpu::Lower(module, sink, quiet));
  return sink.Finish(std::move(manifest), source.checkpoint);
}

Result<std::shared_ptr<const artifact::Artifact>> BuildTapped(
    const TappedRun& run, const std::function<void(ir::Graph&)>& add_taps) {
  const size_t longest = LongestSequence(run.sequences);
  const auto block = static_cast<int64_t>(std::min(kBlockTokens, longest));
  const auto context = static_cast<int64_t>(longest);
  std::vector<models::GraphRequest> requests;
  if (block > 1) {
    requests.push_back({GraphKind::kPrefill, block, context, LogitsRows::kAll});
  }
  requests.push_back({GraphKind::kKv, 1, context, LogitsRows::kAll});
  HX_ASSIGN_OR_RETURN(ir::Module module,
                      models::BuildDecoder(run.source, requests));
  HX_RETURN_IF_ERROR(RunPipeline(module, kStaticPipeline, {}));
  for (ir::Graph& graph : module.graphs) add_taps(graph);
  return LowerInMemory(run.source, module);
}

void AddToKey(const artifact::Artifact& tapped, const TokenSequences& sequences,
              Hasher& key) {
  artifact::Manifest manifest = tapped.manifest();
  manifest.model_name.clear();  // where the model lies does not matter
  key.Add(artifact::EncodeManifest(manifest));
  for (uint32_t i = 0; i < manifest.segments.size(); ++i)
    key.Add(tapped.Segment(i));
  for (const std::vector<int32_t>& ids : sequences)
    key.AddNumbers<int32_t>(ids);
}

Status RunTapped(const TappedRun& run,
                 const std::shared_ptr<const artifact::Artifact>& tapped,
                 std::string_view step, const TapSink& on_tap) {
  HX_ASSIGN_OR_RETURN(const auto engine,
                      CreateEngine("cpu", {.threads = run.threads}));
  SessionOptions options;
  options.on_tap = on_tap;
  HX_ASSIGN_OR_RETURN(const auto session,
                      Session::Create({tapped, engine.get(), options}));
  run.progress.Begin(step, "tokens", TotalTokens(run.sequences));
  int64_t done = 0;
  for (const auto& ids : run.sequences) {
    HX_RETURN_IF_ERROR(RunSequence(*session, ids));
    done += std::ssize(ids);
    run.progress.Update(done);
  }
  return OkStatus();
}

}  // namespace hexllm

#include "compile/tapped_run.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "artifact/manifest_codec.h"
#include "artifact/writer.h"
#include "backend/cpu/lower.h"
#include "backend/engines.h"
#include "compile/artifact_parts.h"
#include "compile/taps.h"
#include "compile/targets.h"
#include "models/decoder.h"
#include "passes/pipeline.h"
#include "runtime/kv_manager.h"
#include "runtime/step_graphs.h"

namespace hexllm {
namespace {

// T of the largest blocks. Larger ones cost memory for the taps and gain
// little.
constexpr int64_t kBlockTokens = 32;

// The graphs of a tapped artifact, of T = 1, 2, 4 and so on, on one KV cache.
class BlockRunner {
 public:
  // `engine` outlives it.
  static Result<BlockRunner> Create(
      const std::shared_ptr<const artifact::Artifact>& graphs, Engine& engine,
      const TapSink& on_tap);

  // From an empty cache, in the largest blocks that are full.
  Status Run(std::span<const int32_t> ids);

 private:
  std::unique_ptr<KvManager> kv_;  // the runners have its address
  std::vector<std::unique_ptr<DecoderRunner>> runners_;  // largest T first
};

Result<BlockRunner> BlockRunner::Create(
    const std::shared_ptr<const artifact::Artifact>& graphs, Engine& engine,
    const TapSink& on_tap) {
  const artifact::Manifest& manifest = graphs->manifest();
  std::vector<StepGraph> steps = FindStepGraphs(manifest);
  std::ranges::sort(steps, std::greater(), &StepGraph::step_tokens);
  HX_ASSIGN_OR_RETURN(KvGeometry geometry, FindKvGeometry(manifest, steps));
  HX_ASSIGN_OR_RETURN(KvManager kv,
                      KvManager::Create(engine, std::move(geometry)));
  BlockRunner made;
  made.kv_ = std::make_unique<KvManager>(std::move(kv));
  for (const StepGraph& step : steps) {
    HX_ASSIGN_OR_RETURN(
        auto runner,
        DecoderRunner::Create({graphs, &engine, made.kv_.get(), on_tap}, step));
    made.runners_.push_back(std::move(runner));
  }
  return made;
}

Status BlockRunner::Run(std::span<const int32_t> ids) {
  kv_->Reset();
  for (const auto& runner : runners_)
    runner->ChooseRope(static_cast<uint32_t>(ids.size()));
  for (const auto& runner : runners_) {
    const size_t tokens = runner->step_tokens();
    for (; ids.size() >= tokens; ids = ids.subspan(tokens)) {
      HX_RETURN_IF_ERROR(runner->Step(ids.first(tokens)));
      runner->Commit();
    }
  }
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
    const models::ModelSource& source, size_t longest) {
  const auto context = static_cast<int64_t>(longest);
  std::vector<models::GraphRequest> requests = {
      {GraphKind::kKv, 1, context, LogitsRows::kAll}};
  for (int64_t t = 2; t <= std::min(kBlockTokens, context); t *= 2)
    requests.push_back({GraphKind::kPrefill, t, context, LogitsRows::kAll});
  HX_ASSIGN_OR_RETURN(ir::Module module,
                      models::BuildDecoder(source, requests));
  HX_RETURN_IF_ERROR(RunPipeline(module, kStaticPipeline, {}));
  for (ir::Graph& graph : module.graphs) AddTaps(graph, InputTaps::kYes);
  return LowerInMemory(source, module);
}

void AddToKey(const TappedRun& run, Hasher& key) {
  artifact::Manifest manifest = run.graphs->manifest();
  manifest.model_name.clear();  // where the model lies does not matter
  key.Add(artifact::EncodeManifest(manifest));
  for (uint32_t i = 0; i < manifest.segments.size(); ++i)
    key.Add(run.graphs->Segment(i));
  for (const std::vector<int32_t>& ids : run.sequences)
    key.AddNumbers<int32_t>(ids);
}

Status RunTapped(const TappedRun& run, std::string_view step,
                 ProgressSink& progress, const TapSink& on_tap) {
  HX_ASSIGN_OR_RETURN(const auto engine,
                      CreateEngine("cpu", {.threads = run.threads}));
  HX_ASSIGN_OR_RETURN(BlockRunner runner,
                      BlockRunner::Create(run.graphs, *engine, on_tap));
  progress.Begin(step, "tokens", TotalTokens(run.sequences));
  int64_t done = 0;
  for (const auto& ids : run.sequences) {
    HX_RETURN_IF_ERROR(runner.Run(ids));
    done += std::ssize(ids);
    progress.Update(done);
  }
  return OkStatus();
}

}  // namespace hexllm

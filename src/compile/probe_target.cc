#include "compile/probe_target.h"

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "artifact/writer.h"
#include "compile/key_statistics.h"
#include "compile/stand_in.h"
#include "compile/targets.h"
#include "ir/fingerprint.h"
#include "models/decoder.h"
#include "passes/pipeline.h"

namespace hexllm {
namespace {

// Of table and head: programs differ in size only.
constexpr int64_t kVocabRows = 256;

// What the recipe says about the linears of each layer.
std::map<int, std::string> SettingsOfLayers(
    const quant::ResolvedRecipe& recipe) {
  std::map<int, std::string> texts;
  for (const auto& [name, settings] : recipe.layers) {
    const auto layer = LayerOfName(name);
    if (!layer) continue;
    // The layer's number out of the name.
    const std::string prefix = "model.layers." + std::to_string(*layer);
    texts[*layer] += name.substr(prefix.size());
    texts[*layer] += ' ';
    texts[*layer] += settings.scheme->name;
    texts[*layer] += ' ' + std::to_string(settings.block) + ';';
  }
  return texts;
}

// The first layer, the last, and the first of each other kind.
std::set<int64_t> LayersToProbe(const ProbeJob& job) {
  std::set<int64_t> layers = {0, job.quantize.source.config.layers - 1};
  std::set<std::string> seen;
  for (const auto& [layer, text] : SettingsOfLayers(job.recipe)) {
    if (seen.insert(text).second) layers.insert(layer);
  }
  return layers;
}

Result<ir::Module> BuildLayers(const ProbeJob& job) {
  GraphPlan plan = job.plan;
  plan.shards = job.quantize.source.config.layers;  // a layer each
  const std::set<int64_t> layers = LayersToProbe(job);
  std::vector<models::GraphRequest> requests;
  for (models::GraphRequest request :
       GraphRequests(plan, job.options.prefill_logits)) {
    request.vocab_rows = kVocabRows;
    if (layers.contains(request.shard)) requests.push_back(request);
  }
  HX_ASSIGN_OR_RETURN(ir::Module module,
                      models::BuildDecoder(job.quantize.source, requests));
  HX_RETURN_IF_ERROR(RunPipeline(module, kStaticPipeline, {}));
  const StandIns stand_ins;
  NullProgress quiet;
  const QuantizeJob& whole = job.quantize;
  HX_RETURN_IF_ERROR(Quantize(module, job.recipe,
                              {.source = whole.source,
                               .text = whole.text,
                               .calibration = whole.calibration,
                               .context = whole.context,
                               .progress = quiet,
                               .stand_ins = &stand_ins,
                               .has_half = whole.has_half})
                         .status());
  return module;
}

// Of a probe, which went well when there is an entry.
Result<Digest> ProbeKey(const ProbeJob& job, const ir::Module& module) {
  Hasher key = job.quantize.cache->StartKey("probe");
  HX_ASSIGN_OR_RETURN(const Digest target, TargetDigest(job.options.target));
  key.Add(target);
  std::vector<size_t> graphs(module.graphs.size());
  std::iota(graphs.begin(), graphs.end(), size_t{0});
  ir::Fingerprints(module).AddGraphs(graphs, key);
  return key.Finish();
}

}  // namespace

Status ProbeTarget(const ProbeJob& job) {
  if (!NeedsStaticRecipe(job.options.target)) return OkStatus();
  ProgressSink& progress = job.quantize.progress;
  progress.Begin("try single layers", "", 0);
  HX_ASSIGN_OR_RETURN(const ir::Module module, BuildLayers(job));
  const FileCache* cache = job.quantize.cache;
  Digest key;
  if (cache != nullptr) {
    HX_ASSIGN_OR_RETURN(key, ProbeKey(job, module));
    if (cache->Find(key, progress)) return OkStatus();
  }
  artifact::MemorySink dropped;
  NullProgress quiet;
  HX_RETURN_IF_ERROR(
      LowerForTarget(job.options.target, module, dropped, quiet).status());
  if (cache != nullptr) cache->Store(key, {}, progress);
  return OkStatus();
}

}  // namespace hexllm

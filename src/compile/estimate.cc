#include "compile/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "backend/htp/context_info.h"
#include "backend/htp/soc_table.h"
#include "backend/lower_entry.h"
#include "base/json.h"
#include "compile/artifact_parts.h"
#include "compile/estimate_report.h"

namespace hexllm {
namespace {

Result<std::optional<htp::TraceMerger>> OpenTrace(const std::string& path) {
  if (path.empty()) return std::optional<htp::TraceMerger>();
  HX_ASSIGN_OR_RETURN(htp::TraceMerger trace, htp::TraceMerger::Create(path));
  return std::optional<htp::TraceMerger>(std::move(trace));
}

Status CheckForHtp(const artifact::Artifact& artifact) {
  const std::string& backend = artifact.manifest().graphs.front().backend;
  if (backend == "htp") return OkStatus();
  return Error{
      ErrorCode::kUsage,
      fmt::format("{}: expected an artifact for the HTP, found one for "
                  "the backend {}; estimate the model itself",
                  artifact.path(), backend)};
}

// The layers of `graph` whose keys are wider than 8 bits.
std::set<int> WideKeys(const artifact::GraphEntry& graph) {
  std::set<int> wide;
  for (const artifact::IoSpec& output : graph.outputs) {
    if (output.role.kind == RoleKind::kKOut && output.dtype != DType::kU8)
      wide.insert(output.role.index);
  }
  return wide;
}

// "k_in[0] u16 [3,64,511], ..."
std::string Describe(std::span<const artifact::IoSpec> specs) {
  std::string text;
  for (const artifact::IoSpec& spec : specs) {
    text += fmt::format("{} {} [{}], ", RoleToString(spec.role),
                        DTypeName(spec.dtype), fmt::join(spec.shape, ","));
  }
  return text;
}

// kUsage unless `graph` is what `expected` has under its name.
Status CheckSameGraph(const artifact::Manifest& expected,
                      const ir::Graph& graph) {
  HX_ASSIGN_OR_RETURN(const artifact::GraphEntry found,
                      MakeEntry(graph, "htp"));
  const auto same = [&](const artifact::GraphEntry& entry) {
    return entry.name == found.name &&
           Describe(entry.inputs) == Describe(found.inputs) &&
           Describe(entry.outputs) == Describe(found.outputs);
  };
  if (std::ranges::any_of(expected.graphs, same)) return OkStatus();
  return Error{
      ErrorCode::kUsage,
      fmt::format("--model: expected the checkpoint that the artifact was made "
                  "from, found one whose graph {} has other inputs or outputs",
                  found.name)};
}

// With its graphs as they are for that SoC: what one has, another may not.
Result<ModelEstimate> EstimateOnSoc(const std::string& model_path,
                                    const EstimateOptions& options,
                                    ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const HtpGraphs graphs,
                      BuildWithStandIns(model_path, options.compile,
                                        options.stand_ins, progress));
  if (options.expected != nullptr) {
    for (const ir::Graph& graph : graphs.module.graphs)
      HX_RETURN_IF_ERROR(CheckSameGraph(*options.expected, graph));
  }
  return EstimateGraphs(graphs.module, graphs.manifest, options.job, progress);
}

}  // namespace

Result<ModelEstimate> EstimateModel(const std::string& model_path,
                                    const EstimateOptions& options,
                                    ProgressSink& progress) {
  HX_RETURN_IF_ERROR(CheckEstimate(options.job));
  HX_ASSIGN_OR_RETURN(std::optional<htp::TraceMerger> trace,
                      OpenTrace(options.trace_path));
  ModelEstimate result;
  for (const std::string& soc : options.job.socs) {
    EstimateOptions one = options;
    one.job.socs = {soc};
    one.job.trace = trace ? &*trace : nullptr;
    one.compile.target.soc = soc;
    HX_ASSIGN_OR_RETURN(ModelEstimate estimate,
                        EstimateOnSoc(model_path, one, progress));
    // The rest is the same for all SoCs.
    std::vector<GraphFigures> graphs = std::move(result.graphs);
    std::ranges::move(estimate.graphs, std::back_inserter(graphs));
    result = std::move(estimate);
    result.graphs = std::move(graphs);
  }
  if (trace) HX_RETURN_IF_ERROR(trace->Finish());
  return result;
}

Result<ModelEstimate> StoredEstimate(const artifact::Artifact& artifact) {
  HX_RETURN_IF_ERROR(CheckForHtp(artifact));
  if (!artifact.FindSegment(kEstimateSegment)) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("{}: expected an artifact compiled with --estimate, found "
                    "one without; name its checkpoint with --model",
                    artifact.path())};
  }
  const auto where = [&](Error error) {
    return std::move(error).With(
        fmt::format("{}: segment {}", artifact.path(), kEstimateSegment));
  };
  HX_ASSIGN_OR_RETURN(const std::string text,
                      TextSegment(artifact, kEstimateSegment));
  auto json = ParseJson(text);
  if (!json.ok()) return where(std::move(json).error());
  auto estimate = EstimateFromJson(*json);
  if (!estimate.ok()) return where(std::move(estimate).error());
  return estimate;
}

Result<std::string> SocOf(const artifact::Artifact& artifact,
                          const std::string& lib_dir) {
  HX_RETURN_IF_ERROR(CheckForHtp(artifact));
  HX_ASSIGN_OR_RETURN(const auto library, htp::QnnSystemLibrary::Open(lib_dir));
  const uint32_t context = artifact.manifest().graphs.front().program;
  HX_RETURN_IF_ERROR(artifact.Verify(context));
  HX_ASSIGN_OR_RETURN(const htp::ContextInfo info,
                      library->Read(artifact.Segment(context)));
  const htp::Soc* soc = info.soc_id ? htp::FindSocById(*info.soc_id) : nullptr;
  if (soc != nullptr) return std::string(soc->name);
  return Error{ErrorCode::kUsage,
               fmt::format("{}: its context does not say for which SoC it is; "
                           "name one with --soc",
                           artifact.path())};
}

Status MatchArtifact(const artifact::Artifact& artifact,
                     EstimateOptions& options) {
  HX_RETURN_IF_ERROR(CheckForHtp(artifact));
  const artifact::Manifest& manifest = artifact.manifest();
  HX_ASSIGN_OR_RETURN(options.compile.recipe_json,
                      TextSegment(artifact, "recipe"));
  options.compile.max_context_len = manifest.context_tokens;
  options.compile.mode = ModelMode::kKv;
  for (const artifact::GraphEntry& graph : manifest.graphs) {
    options.stand_ins.wide_k_layers.merge(WideKeys(graph));
    options.compile.num_sharding =
        std::max<int64_t>(options.compile.num_sharding, graph.shard + 1);
    if (graph.kind != GraphKind::kPrefill) continue;
    options.compile.mode = ModelMode::kHybrid;
    options.compile.prefill_ar_len = graph.step_tokens;
    options.compile.prefill_logits = graph.logits_rows;
  }
  if (const auto& shape = manifest.lookahead) {
    // Without a prefill graph its T is 1.
    if (options.compile.mode == ModelMode::kKv)
      options.compile.prefill_ar_len = 1;
    options.compile.mode = ModelMode::kLookahead;
    options.compile.lookahead = {shape->ngram, shape->window, shape->guesses};
  }
  options.compile.embedding = manifest.embedding
                                  ? models::EmbeddingPlace::kHost
                                  : models::EmbeddingPlace::kGraph;
  options.expected = &manifest;
  return OkStatus();
}

}  // namespace hexllm

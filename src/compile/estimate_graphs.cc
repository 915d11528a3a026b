#include "compile/estimate_graphs.h"

#include <fmt/format.h>

#include <utility>

#include "artifact/segment_sink.h"
#include "backend/htp/lower.h"
#include "backend/htp/qnn_library.h"
#include "backend/htp/soc_table.h"
#include "base/scratch_folder.h"

namespace hexllm {
namespace {

// Takes the binary, which is not for use.
class NoSegments final : public artifact::SegmentSink {
 public:
  Result<uint32_t> Add(artifact::NewSegment, ByteSpan) override { return 0; }
};

// Estimates the graphs for one SoC.
class SocEstimator {
 public:
  SocEstimator(const EstimateJob& job, std::string soc)
      : job_(job), soc_(std::move(soc)) {}

  Status Run(const ir::Module& module, ModelEstimate& result,
             ProgressSink& progress) const {
    HX_ASSIGN_OR_RETURN(const ScratchFolder folder,
                        ScratchFolder::Create(job_.scratch_parent));
    NoSegments dropped;
    HX_ASSIGN_OR_RETURN(
        const std::vector<artifact::GraphEntry> entries,
        htp::Lower(
            module,
            {.soc = soc_, .lib_dir = job_.lib_dir, .trace_dir = folder.path()},
            dropped, progress));
    for (const artifact::GraphEntry& entry : entries) {
      HX_ASSIGN_OR_RETURN(GraphFigures figures,
                          Read(entry, folder.path() + "/" + entry.name));
      result.graphs.push_back(std::move(figures));
    }
    return OkStatus();
  }

 private:
  Result<GraphFigures> Read(const artifact::GraphEntry& entry,
                            const std::string& path_without_ending) const {
    const std::string path = path_without_ending + ".json";
    auto read = htp::ReadEstimate(path);
    // Nobody but the compiler wrote it.
    if (!read.ok() && read.error().code == ErrorCode::kBadInput) {
      return Error{ErrorCode::kEnvironment,
                   read.error().message +
                       "; is the disk full? TMPDIR names another folder"};
    }
    HX_ASSIGN_OR_RETURN(htp::GraphEstimate estimate, std::move(read));
    if (job_.trace != nullptr) {
      HX_RETURN_IF_ERROR(job_.trace->Add(
          {.path = path,
           .title = fmt::format("{} on {}", entry.name, estimate.soc),
           .core_mhz = estimate.core_mhz}));
    }
    return GraphFigures{.name = entry.name,
                        .kind = std::string(GraphKindName(entry.kind)),
                        .step_tokens = entry.step_tokens,
                        .context_tokens = entry.context_tokens,
                        .estimate = std::move(estimate)};
  }

  const EstimateJob& job_;
  std::string soc_;
};

}  // namespace

Status CheckEstimate(const EstimateJob& job) {
  HX_CHECK(!job.socs.empty());
  for (const std::string& name : job.socs) {
    HX_ASSIGN_OR_RETURN(const htp::Soc soc, htp::FindSoc(name));
    HX_RETURN_IF_ERROR(htp::EstimateKeys(soc, "").status());
  }
  return htp::QnnLibrary::Open(job.lib_dir).status();
}

Result<ModelEstimate> EstimateGraphs(const ir::Module& module,
                                     const artifact::Manifest& head,
                                     const EstimateJob& job,
                                     ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const auto library, htp::QnnLibrary::Open(job.lib_dir));
  ModelEstimate result{.producer = head.producer,
                       .library = library->build_id(),
                       .model = head.model_name,
                       .recipe = head.recipe,
                       .graphs = {}};
  for (const std::string& soc : job.socs)
    HX_RETURN_IF_ERROR(SocEstimator(job, soc).Run(module, result, progress));
  return result;
}

}  // namespace hexllm

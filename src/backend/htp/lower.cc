#include "backend/htp/lower.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "backend/htp/estimate.h"
#include "backend/htp/lower_graph.h"
#include "backend/htp/qnn_graph.h"
#include "backend/htp/qnn_session.h"
#include "backend/htp/soc_table.h"
#include "backend/lower_entry.h"

namespace hexllm::htp {
namespace {

using artifact::GraphEntry;

Result<std::shared_ptr<const QnnSession>> OpenSession(
    const LowerOptions& options) {
  HX_ASSIGN_OR_RETURN(const Soc soc, FindSoc(options.soc));
  HX_ASSIGN_OR_RETURN(auto library, QnnLibrary::Open(options.lib_dir));
  return QnnSession::Open(std::move(library), soc);
}

WeightSharing SharingOf(const ir::Module& module, const LowerOptions& options,
                        const Soc& soc) {
  const bool can = RequireFeature(soc, Feature::kWeightSharing).ok();
  return can && !options.simulator && module.graphs.size() > 1
             ? WeightSharing::kOn
             : WeightSharing::kOff;
}

Result<GraphOptions> OptionsOf(const ir::Graph& graph,
                               const LowerOptions& options, const Soc& soc) {
  const uint32_t usual = graph.step_tokens > 1 ? 3 : 2;
  GraphOptions made{.optimization = options.optimization.value_or(usual)};
  if (options.trace_dir.empty()) return made;
  HX_ASSIGN_OR_RETURN(
      made.finalize_keys,
      EstimateKeys(soc, options.trace_dir + "/" + graph.name + ".json"));
  return made;
}

Status AddNodes(const ir::Module& module, const ir::Graph& graph,
                const LowerOptions& options, QnnGraph& qnn) {
  const AttentionForm form =
      options.attention.value_or(FasterForm(graph, qnn.session().soc().htp));
  if (form == AttentionForm::kGrouped)
    return GraphLowering(module, graph, options, qnn).Run();
  const ir::Graph split = SplitHeads(module, graph);
  return GraphLowering(module, split, options, qnn).Run();
}

Status CompileGraph(const ir::Module& module, const ir::Graph& graph,
                    const LowerOptions& options,
                    const std::shared_ptr<QnnContext>& context) {
  HX_ASSIGN_OR_RETURN(const GraphOptions settings,
                      OptionsOf(graph, options, context->session().soc()));
  HX_ASSIGN_OR_RETURN(const auto qnn,
                      QnnGraph::Create(context, graph.name, settings));
  HX_RETURN_IF_ERROR(AddNodes(module, graph, options, *qnn));
  Status status = qnn->Finalize();
  if (status.ok()) return status;
  return std::move(status).error().With(fmt::format("graph {}", graph.name));
}

// Bytes of the context, and of its place in the artifact.
Result<uint32_t> WriteContext(const QnnContext& context,
                              artifact::SegmentSink& sink) {
  HX_ASSIGN_OR_RETURN(const std::vector<std::byte> binary, context.Serialize());
  return sink.Add({.name = "context/0",
                   .kind = artifact::SegmentKind::kQnnContext,
                   .lifetime = artifact::Lifetime::kCall},
                  binary);
}

}  // namespace

Result<std::vector<GraphEntry>> Lower(const ir::Module& module,
                                      const LowerOptions& options,
                                      artifact::SegmentSink& sink,
                                      ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const auto session, OpenSession(options));
  std::vector<GraphEntry> entries;
  for (const ir::Graph& graph : module.graphs) {
    HX_RETURN_IF_ERROR(CheckValueEncodings(graph));
    HX_ASSIGN_OR_RETURN(GraphEntry entry, MakeEntry(graph, "htp"));
    entries.push_back(std::move(entry));
  }
  HX_ASSIGN_OR_RETURN(
      const auto context,
      QnnContext::Create(session, SharingOf(module, options, session->soc())));
  progress.Begin("compile for " + std::string(session->soc().name), "graphs",
                 std::ssize(module.graphs));
  for (size_t i = 0; i < module.graphs.size(); ++i) {
    HX_RETURN_IF_ERROR(
        CompileGraph(module, module.graphs[i], options, context));
    progress.Update(static_cast<int64_t>(i) + 1);
  }
  HX_ASSIGN_OR_RETURN(const uint32_t segment, WriteContext(*context, sink));
  for (GraphEntry& entry : entries) entry.program = segment;
  return entries;
}

}  // namespace hexllm::htp

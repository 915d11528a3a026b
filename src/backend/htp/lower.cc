#include "backend/htp/lower.h"

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
  return qnn->Finalize();
}

// What the contexts of one module are compiled with.
struct Job {
  const ir::Module& module;
  const LowerOptions& options;
  std::shared_ptr<const QnnSession> session;
  artifact::SegmentSink& sink;
  ProgressSink& progress;
  int64_t compiled = 0;  // graphs, so far
};

// The segment of the context.
Result<uint32_t> CompileContext(const ContextPlan& plan, Job& job) {
  HX_ASSIGN_OR_RETURN(const auto context,
                      QnnContext::Create(job.session, plan.sharing));
  for (const size_t index : plan.graphs) {
    HX_RETURN_IF_ERROR(CompileGraph(job.module, job.module.graphs[index],
                                    job.options, context));
    job.progress.Update(++job.compiled);
  }
  HX_ASSIGN_OR_RETURN(const std::vector<std::byte> binary,
                      context->Serialize());
  return job.sink.Add({.name = plan.name,
                       .kind = artifact::SegmentKind::kQnnContext,
                       .lifetime = artifact::Lifetime::kCall},
                      binary);
}

Result<std::vector<GraphEntry>> MakeEntries(const ir::Module& module) {
  std::vector<GraphEntry> entries;
  for (const ir::Graph& graph : module.graphs) {
    HX_RETURN_IF_ERROR(CheckValueEncodings(graph));
    HX_ASSIGN_OR_RETURN(GraphEntry entry, MakeEntry(graph, "htp"));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

Result<std::vector<GraphEntry>> Lower(const ir::Module& module,
                                      const LowerOptions& options,
                                      artifact::SegmentSink& sink,
                                      ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(auto session, OpenSession(options));
  HX_ASSIGN_OR_RETURN(std::vector<GraphEntry> entries, MakeEntries(module));
  HX_ASSIGN_OR_RETURN(const std::vector<ContextPlan> plans,
                      PlanContexts(module, session->soc(), options.use));
  int64_t graphs = 0;
  for (const ContextPlan& plan : plans) graphs += std::ssize(plan.graphs);
  progress.Begin("compile for " + std::string(session->soc().name), "graphs",
                 graphs);
  Job job{module, options, std::move(session), sink, progress};
  for (const ContextPlan& plan : plans) {
    HX_ASSIGN_OR_RETURN(const uint32_t segment, CompileContext(plan, job));
    for (const size_t index : plan.graphs) {
      if (plan.for_simulator) {
        entries[index].simulator_program = segment;
      } else {
        entries[index].program = segment;
      }
    }
  }
  return entries;
}

Status CheckTarget(const LowerOptions& options) {
  return OpenSession(options).status();
}

}  // namespace hexllm::htp

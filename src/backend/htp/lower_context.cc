#include "backend/htp/lower_context.h"

#include <utility>

#include "backend/htp/estimate.h"
#include "backend/htp/lower_graph.h"
#include "backend/htp/qnn_graph.h"
#include "backend/htp/soc_table.h"

namespace hexllm::htp {
namespace {

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

Status CompileGraph(const ContextJob& job, const ir::Graph& graph,
                    const std::shared_ptr<QnnContext>& context) {
  HX_ASSIGN_OR_RETURN(const GraphOptions settings,
                      OptionsOf(graph, job.options, context->session().soc()));
  HX_ASSIGN_OR_RETURN(const auto qnn,
                      QnnGraph::Create(context, graph.name, settings));
  HX_RETURN_IF_ERROR(AddNodes(job.module, graph, job.options, *qnn));
  if (job.options.release_weights) job.options.release_weights();
  return qnn->Finalize();
}

}  // namespace

Result<std::shared_ptr<const QnnSession>> OpenSession(
    const LowerOptions& options) {
  HX_ASSIGN_OR_RETURN(const Soc soc, FindSoc(options.soc));
  HX_ASSIGN_OR_RETURN(auto library, QnnLibrary::Open(options.lib_dir));
  return QnnSession::Open(std::move(library), soc);
}

Status CompileContext(const ContextJob& job, const ChildChannel& channel) {
  HX_ASSIGN_OR_RETURN(const auto session, OpenSession(job.options));
  HX_ASSIGN_OR_RETURN(const auto context,
                      QnnContext::Create(session, job.plan.sharing));
  for (const size_t index : job.plan.graphs) {
    HX_RETURN_IF_ERROR(CompileGraph(job, job.module.graphs[index], context));
    channel.Step();
  }
  HX_ASSIGN_OR_RETURN(const uint64_t written,
                      context->SerializeInto([&](uint64_t bytes) {
                        return channel.Allocate(bytes);
                      }));
  return channel.Shorten(written);
}

}  // namespace hexllm::htp

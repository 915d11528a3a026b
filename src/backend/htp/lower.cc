#include "backend/htp/lower.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "backend/htp/lower_context.h"
#include "backend/htp/lower_graph.h"
#include "backend/htp/lower_memory.h"
#include "backend/htp/lower_queue.h"
#include "backend/htp/soc_table.h"
#include "backend/lower_entry.h"
#include "base/child_process.h"

namespace hexllm::htp {
namespace {

using artifact::GraphEntry;

Result<std::vector<GraphEntry>> MakeEntries(const ir::Module& module) {
  std::vector<GraphEntry> entries;
  for (const ir::Graph& graph : module.graphs) {
    HX_RETURN_IF_ERROR(CheckValueEncodings(graph));
    HX_ASSIGN_OR_RETURN(GraphEntry entry, MakeEntry(graph, "htp"));
    entries.push_back(std::move(entry));
  }
  return entries;
}

// The plans, once they are known to fit.
Result<std::vector<ContextPlan>> CheckedPlans(const ir::Module& module,
                                              const LowerOptions& options) {
  HX_ASSIGN_OR_RETURN(const Soc soc, FindSoc(options.soc));
  HX_ASSIGN_OR_RETURN(std::vector<ContextPlan> plans,
                      PlanContexts(module, soc, options.use));
  if (options.max_memory)
    HX_RETURN_IF_ERROR(CheckPeak(module, plans, *options.max_memory));
  return plans;
}

}  // namespace

Result<std::vector<GraphEntry>> Lower(const ir::Module& module,
                                      const LowerOptions& options,
                                      artifact::SegmentSink& sink,
                                      ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const std::vector<ContextPlan> plans,
                      CheckedPlans(module, options));
  HX_ASSIGN_OR_RETURN(std::vector<GraphEntry> entries, MakeEntries(module));
  int64_t graphs = 0;
  for (const ContextPlan& plan : plans) graphs += std::ssize(plan.graphs);
  progress.Begin("compile for " + options.soc, "graphs", graphs);
  const auto take = [&](const ContextPlan& plan, ByteSpan binary) -> Status {
    HX_ASSIGN_OR_RETURN(const uint32_t segment,
                        sink.Add({.name = plan.name,
                                  .kind = artifact::SegmentKind::kQnnContext,
                                  .lifetime = artifact::Lifetime::kCall},
                                 binary));
    for (const size_t index : plan.graphs) {
      GraphEntry& entry = entries[index];
      if (plan.for_simulator) {
        entry.simulator_program = segment;
      } else {
        entry.program = segment;
      }
    }
    return OkStatus();
  };
  HX_RETURN_IF_ERROR(MakeContexts({module, plans, options, progress}, take));
  return entries;
}

Status CheckSize(const ir::Module& module, const LowerOptions& options) {
  return CheckedPlans(module, options).status();
}

Result<Digest> TargetDigest(const LowerOptions& options) {
  HX_ASSIGN_OR_RETURN(const Soc soc, FindSoc(options.soc));
  const auto path = std::filesystem::path(options.lib_dir) / kLibraryFile;
  HX_ASSIGN_OR_RETURN(const MappedFile library,
                      MappedFile::Open(path.string()));
  Hasher hasher;
  hasher.Add(DigestOf(library.bytes()));
  hasher.Add(soc.name);
  hasher.AddNumber(options.optimization.value_or(0));
  hasher.AddNumber(options.attention.has_value());
  hasher.AddNumber(options.attention.value_or(AttentionForm::kGrouped));
  for (const std::string& op : options.absent_ops) hasher.Add(op);
  return hasher.Finish();
}

Status CheckTarget(const LowerOptions& options) {
  return ChildProcess::Run(
             [&](const ChildChannel&) { return OpenSession(options).status(); })
      .status();
}

}  // namespace hexllm::htp

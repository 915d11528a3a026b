#include "backend/cpu/lower.h"

#include <fmt/format.h>

#include <utility>

#include "backend/cpu/lower_encodings.h"
#include "backend/cpu/lower_graph.h"
#include "backend/cpu/lower_weights.h"
#include "backend/lower_entry.h"

namespace hexllm::cpu {
namespace {

using artifact::GraphEntry;

Result<uint32_t> WritePlan(LoweredGraph lowered, const WeightTable& weights,
                           const std::string& name,
                           artifact::SegmentSink& sink) {
  for (const size_t row : lowered.weight_rows) {
    lowered.plan.weights.push_back(weights[row]);
  }
  return sink.Add({.name = "plan/" + name,
                   .kind = artifact::SegmentKind::kCpuPlan,
                   .lifetime = artifact::Lifetime::kCall},
                  AsBytes(SerializePlan(lowered.plan)));
}

}  // namespace

// All graphs are lowered before the first weight is written, so that what is
// unsupported is found at once.
Result<std::vector<GraphEntry>> Lower(const ir::Module& module,
                                      artifact::SegmentSink& sink,
                                      ProgressSink& progress) {
  WeightTable weights(module.constants);
  std::vector<LoweredGraph> lowered;
  std::vector<GraphEntry> entries;
  for (const ir::Graph& graph : module.graphs) {
    HX_RETURN_IF_ERROR(CheckValueEncodings(graph));
    HX_ASSIGN_OR_RETURN(GraphEntry entry, MakeEntry(graph, "cpu"));
    entries.push_back(std::move(entry));
    HX_ASSIGN_OR_RETURN(LoweredGraph plan, GraphLowering(graph, weights).Run());
    lowered.push_back(std::move(plan));
  }
  HX_RETURN_IF_ERROR(weights.Write(sink, progress));
  for (size_t i = 0; i < entries.size(); ++i) {
    HX_ASSIGN_OR_RETURN(
        entries[i].program,
        WritePlan(std::move(lowered[i]), weights, entries[i].name, sink));
  }
  return entries;
}

}  // namespace hexllm::cpu

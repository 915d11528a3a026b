#include "backend/cpu/lower.h"

#include <fmt/format.h>

#include <utility>

#include "backend/cpu/lower_encodings.h"
#include "backend/cpu/lower_graph.h"
#include "backend/cpu/lower_weights.h"

namespace hexllm::cpu {
namespace {

using artifact::GraphEntry;
using artifact::IoSpec;
using artifact::LogitsRows;

Result<LogitsRows> FindLogitsRows(const ir::Graph& graph) {
  const ir::ValueId logits = graph.FindIo({.kind = RoleKind::kLogits});
  if (!logits.valid()) return LogitsRows::kNone;
  const int64_t rows = graph.type(logits).shape[0];
  if (rows == graph.step_tokens) return LogitsRows::kAll;
  if (rows == 1) return LogitsRows::kLast;
  return Error{ErrorCode::kUnsupported,
               fmt::format("graph '{}': logits of {} of {} rows; expected all "
                           "rows or the last one",
                           graph.name, rows, graph.step_tokens)};
}

Result<GraphEntry> MakeEntry(const ir::Graph& graph) {
  HX_RETURN_IF_ERROR(CheckValueEncodings(graph));
  GraphEntry entry;
  entry.name = graph.name;
  entry.kind = graph.kind;
  entry.step_tokens = static_cast<uint32_t>(graph.step_tokens);
  entry.context_tokens = static_cast<uint32_t>(graph.context_tokens);
  entry.backend = "cpu";
  HX_ASSIGN_OR_RETURN(entry.logits_rows, FindLogitsRows(graph));
  for (const ir::GraphIo& io : graph.inputs) {
    HX_ASSIGN_OR_RETURN(IoSpec spec, MakeIoSpec(graph, io));
    entry.inputs.push_back(std::move(spec));
  }
  for (const ir::GraphIo& io : graph.outputs) {
    HX_ASSIGN_OR_RETURN(IoSpec spec, MakeIoSpec(graph, io));
    entry.outputs.push_back(std::move(spec));
  }
  return entry;
}

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
    HX_ASSIGN_OR_RETURN(GraphEntry entry, MakeEntry(graph));
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

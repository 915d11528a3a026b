// How long graphs take on a phone, in the opinion of the vendor's compiler:
// they are compiled for that opinion alone and the result is thrown away, since
// what asks for it stays in a binary. Used by compile/estimate and
// compile/compiler. Nothing here is measured on a device; the report
// (compile/estimate_report.h) says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/manifest.h"
#include "backend/htp/estimate.h"
#include "backend/htp/trace_merge.h"
#include "base/progress.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm {

// The segment of an artifact that holds them: kText, JSON of
// compile/estimate_report.h.
inline constexpr std::string_view kEstimateSegment = "estimate";

// One graph on one SoC.
struct GraphFigures {
  std::string name;             // "prefill_128"
  std::string kind;             // "prefill"
  uint32_t step_tokens = 1;     // T
  uint32_t context_tokens = 1;  // C
  htp::GraphEstimate estimate;
};

struct ModelEstimate {
  std::string producer;  // "hexllm 0.1.0"
  std::string library;   // the vendor's: "v2.51.0.260929"
  std::string model;
  std::string recipe;
  bool calibrated = false;           // else with stand-ins for ranges
  std::vector<GraphFigures> graphs;  // of the first SoC, then of the next
};

// What is compiled for the estimate, and where.
struct EstimateJob {
  std::vector<std::string> socs;
  std::string lib_dir;  // the folder of libQnnHtp.so
  // Holds the compiler's schedules meanwhile: 3 to 5 MB for each layer of each
  // graph.
  std::string scratch_parent;
  // When not null, gets each schedule as "<graph> on <SoC>".
  htp::TraceMerger* trace = nullptr;
};

// Fails where EstimateGraphs would in any case: kUsage for an unknown SoC,
// kUnsupported for one without a cost model, errors of QnnLibrary::Open.
Status CheckEstimate(const EstimateJob& job);

// The estimates of `module`, which htp::Lower takes; `head` names model and
// recipe. kUnsupported when the library does not know the keys; errors of
// htp::Lower and ReadEstimate.
Result<ModelEstimate> EstimateGraphs(const ir::Module& module,
                                     const artifact::Manifest& head,
                                     const EstimateJob& job,
                                     ProgressSink& progress);

}  // namespace hexllm

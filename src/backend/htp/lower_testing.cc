#include "backend/htp/lower_testing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/htp/engine.h"

namespace hexllm::htp {

Result<std::shared_ptr<testing::TestArtifact>> LowerForHtp(
    const ir::Module& module, const HtpTarget& target) {
  auto artifact = std::make_shared<testing::TestArtifact>();
  NullProgress progress;
  artifact::Manifest& manifest = artifact->manifest_for_edit();
  manifest.vocab_size = target.vocab;
  HX_ASSIGN_OR_RETURN(manifest.graphs, Lower(module,
                                             {.soc = target.soc,
                                              .lib_dir = target.lib_dir,
                                              .use = ContextUse::kSimulator,
                                              .attention = target.attention,
                                              .absent_ops = target.absent_ops},
                                             *artifact, progress));
  for (artifact::SegmentInfo& segment : manifest.segments)
    segment.checksum.reset();  // as of any artifact in memory
  return artifact;
}

Result<std::vector<ir::HostTensor>> RunOnHtp(
    const ir::Module& module, size_t index, const HtpTarget& target,
    std::span<const ir::HostTensor> inputs) {
  HX_ASSIGN_OR_RETURN(const auto artifact, LowerForHtp(module, target));
  HX_ASSIGN_OR_RETURN(const auto engine,
                      CreateEngine({.lib_dir = target.lib_dir}));
  HX_ASSIGN_OR_RETURN(testing::BoundGraph graph,
                      testing::BoundGraph::Load(*engine, artifact, index));
  for (size_t i = 0; i < inputs.size(); ++i) graph.SetInput(i, inputs[i]);
  HX_RETURN_IF_ERROR(graph.graph().Execute({}));
  std::vector<ir::HostTensor> outputs;
  for (size_t i = 0; i < module.graphs[index].outputs.size(); ++i) {
    outputs.push_back(graph.GetOutput(i));
  }
  return outputs;
}

double MostSteps(const ir::Encoding& encoding, std::span<const float> found,
                 std::span<const float> wanted) {
  double step = 1.0 / 1024;
  if (encoding.dtype == DType::kF16) {
    double largest = 1;
    for (const float value : wanted) {
      largest = std::max(largest, std::fabs(static_cast<double>(value)));
    }
    step *= largest;
  } else {
    step = static_cast<double>(encoding.scales[0]);
  }
  double most = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (found[i] == wanted[i]) continue;  // infinite, too
    const double difference = std::fabs(static_cast<double>(found[i]) -
                                        static_cast<double>(wanted[i]));
    // NaN is no number of steps.
    if (!(difference <= std::numeric_limits<double>::max())) return INFINITY;
    most = std::max(most, difference / step);
  }
  return most;
}

}  // namespace hexllm::htp

// One loaded graph of the Hexagon engine. Internal to htp/engine*.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "artifact/artifact.h"
#include "backend/engine.h"
#include "backend/htp/qnn_executable.h"
#include "base/status.h"

namespace hexllm::htp {

// Where a graph comes from.
struct GraphSource {
  std::shared_ptr<const artifact::Artifact> artifact;
  size_t index = 0;  // in its manifest
};

class HtpGraph final : public ExecutableGraph {
 public:
  // `executable` is the graph's in its context. kBadInput when its inputs and
  // outputs are not those of the manifest.
  static Result<std::unique_ptr<ExecutableGraph>> Create(
      GraphSource source, std::unique_ptr<QnnExecutable> executable);

  const artifact::GraphEntry& entry() const override { return entry_; }
  Status Bind(IoDirection direction, size_t index,
              std::span<std::byte> memory) override;
  Status Execute(StepRows rows) override;

 private:
  // An input or output of the manifest.
  struct Slot {
    // The tensor of the same name; nothing for one without elements, which the
    // QNN graph does not have.
    std::optional<size_t> tensor;
    bool bound = false;
  };

  HtpGraph(GraphSource source, std::unique_ptr<QnnExecutable> executable);
  Status MatchTensors();
  Status CheckTokens(StepRows rows);

  std::shared_ptr<const artifact::Artifact> artifact_;
  const artifact::GraphEntry& entry_;
  std::unique_ptr<QnnExecutable> executable_;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::span<std::byte> tokens_;  // i32 [T]; empty when there are none
};

}  // namespace hexllm::htp

// A compiled graph that can run: in the context it was compiled in, or in one
// loaded from a binary. Used by the engine and by tests. Sizes are checked
// here; the library checks none.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backend/htp/qnn_session.h"
#include "backend/htp/qnn_tensor.h"
#include "base/status.h"

namespace hexllm::htp {

class QnnExecutable {
 public:
  // `info` is from QnnGraph::Info or from the context's binary
  // (context_info.h). kBadInput when the context has no such graph.
  static Result<std::unique_ptr<QnnExecutable>> Retrieve(
      std::shared_ptr<const QnnContext> context, GraphInfo info);

  const GraphInfo& info() const { return info_; }

  // Uses `memory` for an input or output from now on: exactly
  // info().inputs[index].bytes (kUsage otherwise); it must outlive its use.
  Status BindInput(size_t index, std::span<std::byte> memory);
  Status BindOutput(size_t index, std::span<std::byte> memory);

  // Runs once. kUsage when something is not bound.
  Status Execute();

 private:
  QnnExecutable(std::shared_ptr<const QnnContext> context, GraphInfo info);

  std::shared_ptr<const QnnContext> context_;
  GraphInfo info_;
  abi::Handle handle_ = nullptr;
  std::vector<abi::Tensor> inputs_;
  std::vector<abi::Tensor> outputs_;
};

}  // namespace hexllm::htp

// A compiled graph that can run: in the context it was compiled in, or in one
// loaded from a binary. Used by the engine and by tests. Sizes are checked
// here; the library checks none.
//
// Its memory is the client's, which a device copies for each run, or shared
// with the device (rpc_memory.h): such memory is registered in the context when
// the last input or output is bound, all in one call, and deregistered with the
// graph.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backend/htp/qnn_session.h"
#include "backend/htp/qnn_tensor.h"
#include "backend/htp/rpc_memory.h"
#include "base/status.h"

namespace hexllm::htp {

class QnnExecutable {
 public:
  // `info` is from QnnGraph::Info or from the context's binary
  // (context_info.h). kBadInput when the context has no such graph. With
  // `shared` all memory must be from there.
  static Result<std::unique_ptr<QnnExecutable>> Retrieve(
      std::shared_ptr<const QnnContext> context, GraphInfo info,
      std::shared_ptr<const RpcMemory> shared = nullptr);
  QnnExecutable(const QnnExecutable&) = delete;
  QnnExecutable& operator=(const QnnExecutable&) = delete;
  ~QnnExecutable();

  const GraphInfo& info() const { return info_; }

  // Uses `memory` for an input or output from now on: exactly
  // info().inputs[index].bytes (kUsage otherwise); it must outlive its use.
  // kEnvironment when the device does not take shared memory.
  Status BindInput(size_t index, std::span<std::byte> memory);
  Status BindOutput(size_t index, std::span<std::byte> memory);

  // Runs once. kUsage when something is not bound.
  Status Execute();

 private:
  struct Binding {
    bool bound = false;
    RpcPlace place = {};           // of shared memory
    abi::Handle handle = nullptr;  // of shared memory once it is registered
  };
  QnnExecutable(std::shared_ptr<const QnnContext> context, GraphInfo info);

  // Inputs come first, then outputs.
  const TensorInfo& InfoOf(size_t tensor) const;
  abi::Tensor& RawOf(size_t tensor);
  Status Bind(size_t tensor, std::span<std::byte> memory);
  Status BindShared(size_t tensor, std::span<std::byte> memory);
  Status RegisterAll();
  Status CheckBound() const;

  std::shared_ptr<const QnnContext> context_;
  GraphInfo info_;
  std::shared_ptr<const RpcMemory> shared_;  // null: memory is the client's
  abi::Handle handle_ = nullptr;
  std::vector<abi::Tensor> inputs_;
  std::vector<abi::Tensor> outputs_;
  std::vector<Binding> bindings_;
};

}  // namespace hexllm::htp

// Memory that the host and the HTP both see, from libcdsprpc.so of the device:
// what a graph reads and writes in it is not copied. Used by the engine, which
// hands it out as buffers, and by its graphs, which register it
// (qnn_executable.h). Not for the simulator.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/engine.h"
#include "backend/htp/dynamic_library.h"
#include "backend/htp/qnn_device_abi.h"
#include "base/status.h"

namespace hexllm::htp {

// One allocation, freed with the last buffer or registration in it.
class RpcBlock {
 public:
  RpcBlock(const RpcBlock&) = delete;
  RpcBlock& operator=(const RpcBlock&) = delete;
  ~RpcBlock();

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_; }  // its name in registrations

 private:
  friend class RpcMemory;
  RpcBlock() = default;

  std::shared_ptr<const DynamicLibrary> library_;
  abi::RpcFree free_ = nullptr;
  std::span<std::byte> bytes_;
  int fd_ = -1;
};

// Where a buffer lies.
struct RpcPlace {
  std::shared_ptr<const RpcBlock> block;
  size_t offset = 0;
  bool operator==(const RpcPlace&) const = default;
};

// Not thread-safe; blocks may outlive it.
class RpcMemory {
 public:
  // Loads libcdsprpc.so: the one in `folder`, else the system's. kEnvironment
  // when there is none, or when it lacks a function.
  static Result<std::unique_ptr<RpcMemory>> Open(const std::string& folder);

  // Makes one block for the buffers to come, `bytes` in all when each is
  // rounded up to kBufferAlignment. What is left of the last one is not used
  // any more. kEnvironment when there is no such block.
  Status Reserve(size_t bytes);
  // Zeroed memory with kBufferAlignment: the next piece of the block, or a
  // block of its own when it does not fit.
  Result<Buffer> Allocate(size_t bytes);

  // Nothing for memory that Allocate did not give.
  std::optional<RpcPlace> Find(std::span<const std::byte> memory) const;

 private:
  RpcMemory() = default;
  Status Resolve();
  Result<std::shared_ptr<const RpcBlock>> NewBlock(size_t bytes);
  // Null when there is no memory.
  void* AllocateRaw(size_t bytes) const;

  std::shared_ptr<const DynamicLibrary> library_;
  abi::RpcAlloc alloc_ = nullptr;    // up to 2 GiB
  abi::RpcAlloc2 alloc2_ = nullptr;  // newer; null when it is not there
  abi::RpcFree free_ = nullptr;
  abi::RpcToFd to_fd_ = nullptr;
  std::vector<std::weak_ptr<const RpcBlock>> blocks_;
  std::weak_ptr<const RpcBlock> reserved_;     // kept by its buffers
  size_t used_ = 0;                            // bytes of it
  std::shared_ptr<const RpcBlock> untouched_;  // reserved_ before its first
};

}  // namespace hexllm::htp

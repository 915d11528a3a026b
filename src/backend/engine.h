// What runs a compiled graph: the only face of a backend that the runtime sees.
// Implementations: cpu/engine.h (and htp). Roles and encodings come from the
// artifact's manifest; sizes are checked here, by us, for every backend.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "artifact/artifact.h"
#include "base/status.h"

namespace hexllm {

// Alignment of every buffer an engine hands out, in bytes.
inline constexpr size_t kBufferAlignment = 128;

// Memory that an engine can bind: client memory, or shared (RPC) memory on a
// device. Move-only; zeroed when new.
class Buffer {
 public:
  using Release = void (*)(std::byte* data, size_t bytes);
  Buffer() = default;
  Buffer(std::byte* data, size_t bytes, Release release)
      : data_(data), bytes_(bytes), release_(release) {}
  Buffer(Buffer&& other) noexcept { Swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) release_(data_, bytes_);
  }
  std::span<std::byte> bytes() { return {data_, bytes_}; }
  std::span<const std::byte> bytes() const { return {data_, bytes_}; }

 private:
  void Swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
  }
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  Release release_ = nullptr;
};

// Where buffers come from. The KV manager and the runner allocate through it
// and through nothing else.
class BufferAllocator {
 public:
  virtual ~BufferAllocator() = default;
  // kEnvironment when there is no memory.
  virtual Result<Buffer> Allocate(size_t bytes) = 0;
};

enum class IoDirection : uint8_t { kInput, kOutput };

// The rows [begin, T) of a step that hold real tokens; the rows before are
// padding. Rows outside may be left uncomputed: their outputs (and their
// columns of k_out, v_out) are then undefined.
struct StepRows {
  uint32_t begin = 0;
};

// One loaded graph. Not thread-safe; graphs of one engine must not run at the
// same time.
class ExecutableGraph {
 public:
  virtual ~ExecutableGraph() = default;
  // The manifest's entry; lives as long as the artifact.
  virtual const artifact::GraphEntry& entry() const = 0;
  // Uses `memory` for input or output `index` of entry() from now on. It must
  // have exactly the spec's size and kBufferAlignment (kUsage otherwise), come
  // from the engine's allocator, outlive the graph or the next Bind, and share
  // nothing with an output of the graph: outputs may be written before the last
  // input is read.
  virtual Status Bind(IoDirection direction, size_t index,
                      std::span<std::byte> memory) = 0;
  // Runs one step. kUsage when an input or output is not bound, when no row is
  // left, or when a token id lies outside the vocabulary. Does not
  // allocate on the CPU.
  virtual Status Execute(StepRows rows) = 0;
};

class Engine : public BufferAllocator {
 public:
  virtual std::string_view name() const = 0;  // "cpu"
  // Prepares graph `index` of the artifact's manifest; the graph keeps the
  // artifact alive. kBadInput when its program does not fit the manifest,
  // kUnsupported when it is for another backend.
  virtual Result<std::unique_ptr<ExecutableGraph>> Load(
      std::shared_ptr<const artifact::Artifact> artifact, size_t index) = 0;
};

}  // namespace hexllm

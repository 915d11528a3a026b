// What runs a compiled graph: the only face of a backend that the runtime sees.
// Implementations: cpu/engine.h (and htp). Roles and encodings come from the
// artifact's manifest; sizes are checked here, by us, for every backend.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "artifact/artifact.h"
#include "base/status.h"

namespace hexllm {

// Alignment of every buffer an engine hands out, in bytes.
inline constexpr size_t kBufferAlignment = 128;

// Memory that an engine can bind: client memory, or shared (RPC) memory on a
// device. Move-only; zeroed when new.
class Buffer {
 public:
  using Release = std::function<void(std::byte* data, size_t bytes)>;
  Buffer() = default;
  Buffer(std::byte* data, size_t bytes, Release release)
      : data_(data), bytes_(bytes), release_(std::move(release)) {}
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
  Release release_;
};

// Where buffers come from. The KV manager and the runner allocate through it
// and through nothing else.
class BufferAllocator {
 public:
  virtual ~BufferAllocator() = default;
  // Says that buffers of `bytes` in all, each rounded up to kBufferAlignment,
  // are asked for next. An engine that shares memory with its device takes it
  // in one piece. More may be asked for. kEnvironment when there is no memory.
  virtual Status Reserve([[maybe_unused]] size_t bytes) { return OkStatus(); }
  // kEnvironment when there is no memory.
  virtual Result<Buffer> Allocate(size_t bytes) = 0;
};

enum class IoDirection : uint8_t { kInput, kOutput };

// The rows [begin, T) of a step that hold real tokens; the rows before are
// padding. Rows outside may be left uncomputed: their outputs (and their
// columns of k_out, v_out) are then undefined. Token ids of padding rows may be
// overwritten.
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
  // have exactly the spec's size and kBufferAlignment (k_in, v_in, and k_out of
  // an evictor: that of an element, as the cache's window moves; kUsage
  // otherwise), come from the
  // engine's allocator, outlive the graph or the next Bind, and share
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
  // Says that steps follow now, one after the other (true), or that none does
  // for a while (false): a device may keep its clocks up in between.
  // kEnvironment when it refuses; steps run all the same.
  virtual Status SetBusy([[maybe_unused]] bool busy) { return OkStatus(); }
};

// Busy while it lives.
class BusyEngine {
 public:
  static Result<BusyEngine> Begin(Engine& engine) {
    HX_RETURN_IF_ERROR(engine.SetBusy(true));
    return BusyEngine(engine);
  }
  BusyEngine(BusyEngine&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)) {}
  BusyEngine& operator=(BusyEngine&&) = delete;
  // The clocks go down in the end, with the engine at the latest.
  ~BusyEngine() {
    if (engine_ != nullptr) (void)engine_->SetBusy(false);
  }

 private:
  explicit BusyEngine(Engine& engine) : engine_(&engine) {}
  Engine* engine_;
};

}  // namespace hexllm

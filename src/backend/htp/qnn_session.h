// The library made ready for one SoC, and contexts in it: RAII over the log,
// backend, device and context handles. Used by the lowering (to compile) and by
// the engine (to run). Graphs are in qnn_graph.h and qnn_executable.h.
//
// Ownership: a context keeps its session alive, a session its library. One
// thread at a time per session.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/htp/qnn_abi.h"
#include "backend/htp/qnn_library.h"
#include "backend/htp/soc_table.h"
#include "base/bytes.h"
#include "base/status.h"

namespace hexllm::htp {

class QnnSession {
 public:
  // Opens backend and device for `soc`. kUnsupported when the library does not
  // know the SoC, kEnvironment for other failures.
  static Result<std::shared_ptr<const QnnSession>> Open(
      std::shared_ptr<const QnnLibrary> library, const Soc& soc);

  QnnSession(const QnnSession&) = delete;
  QnnSession& operator=(const QnnSession&) = delete;
  ~QnnSession();

  const QnnLibrary& library() const { return *library_; }
  const Soc& soc() const { return soc_; }
  abi::Handle backend() const { return backend_; }
  abi::Handle device() const { return device_; }  // never null

  // True when the library has the op "qti.aisw::<op>", for example
  // "RotaryEmbedding", which is not in all versions. Says nothing about types.
  bool HasOp(std::string_view op) const { return ops_.count(op) != 0; }

 private:
  QnnSession() = default;
  Status Start();
  Status ReadOps();

  std::shared_ptr<const QnnLibrary> library_;
  Soc soc_;
  abi::Handle log_ = nullptr;
  abi::Handle backend_ = nullptr;
  abi::Handle device_ = nullptr;
  std::set<std::string, std::less<>> ops_;
};

// Whether graphs of one context store equal constants once. A shared binary
// does not load on x86 (the context it was made in does run there); it needs
// v73 (soc_table.h).
enum class WeightSharing : uint8_t { kOff, kOn };

// How a context is loaded on a device.
struct ContextLoad {
  // The context that allocated the spill-fill buffer that this one shares; null
  // for one that allocates it. Graphs of both never run at the same time.
  std::shared_ptr<const class QnnContext> spill_fill_owner = nullptr;
  // The most that a graph of all that share the buffer needs; 0: no buffer is
  // shared.
  uint64_t spill_fill_bytes = 0;
};

// Holds graphs: under construction, or loaded from a binary. Move-free; shared
// by its graphs.
class QnnContext {
 public:
  static Result<std::shared_ptr<QnnContext>> Create(
      std::shared_ptr<const QnnSession> session, WeightSharing sharing);
  // From what Serialize() wrote. kBadInput when the bytes are no context binary
  // that this library can read; kUnsupported for a shared binary on x86. The
  // library copies what it needs: `binary` may go afterwards. `load` is for
  // devices; the simulator ignores it.
  static Result<std::shared_ptr<QnnContext>> FromBinary(
      std::shared_ptr<const QnnSession> session, ByteSpan binary,
      ContextLoad load = {});

  QnnContext(const QnnContext&) = delete;
  QnnContext& operator=(const QnnContext&) = delete;
  ~QnnContext();

  const QnnSession& session() const { return *session_; }
  const std::shared_ptr<const QnnSession>& shared_session() const {
    return session_;
  }
  const QnnLibrary& library() const { return session_->library(); }
  abi::Handle handle() const { return handle_; }

  // The context binary. All graphs must have been finalized; one failed graph
  // spoils its context. The same calls in a new process give the same bytes,
  // but tensor ids are inside and count up over a process. With sharing this is
  // where equal constants are merged: about 10 ms per MB, and as much memory
  // again as the binary has.
  Result<std::vector<std::byte>> Serialize() const;
  // The same into the memory that `allocate` has for so many bytes; returns how
  // many were written.
  using Allocate = std::function<Result<std::span<std::byte>>(uint64_t)>;
  Result<uint64_t> SerializeInto(const Allocate& allocate) const;

 private:
  explicit QnnContext(std::shared_ptr<const QnnSession> session)
      : session_(std::move(session)) {}

  std::shared_ptr<const QnnSession> session_;
  std::shared_ptr<const QnnContext> spill_fill_owner_;  // is freed later
  abi::Handle handle_ = nullptr;
};

}  // namespace hexllm::htp

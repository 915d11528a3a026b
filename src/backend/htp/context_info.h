// What is inside a context binary, read by libQnnSystem.so. Used by the engine
// (which tensors a graph has, and their ids) and by `hexllm inspect`.
//
// The bytes must be whole: check their checksum first (Artifact::Verify). What
// the library says about them is checked again here, but the library itself
// crashes on some altered ones (4 of 3000 with one to four altered bytes; most
// of the others it takes for good).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/htp/dynamic_library.h"
#include "backend/htp/qnn_abi.h"
#include "backend/htp/qnn_tensor.h"
#include "base/bytes.h"
#include "base/status.h"

namespace hexllm::htp {

// One graph, with what the HTP says about it.
struct ContextGraph {
  GraphInfo info;
  std::optional<uint32_t> vtcm_bytes;
  std::optional<uint32_t> optimization;
  std::optional<uint64_t> spill_fill_bytes;
};

struct ContextInfo {
  std::string build_id;  // of the library that wrote it
  abi::Version core_version = {};
  abi::Version backend_version = {};
  std::optional<uint32_t> soc_id;  // soc_table.h: FindSocById
  std::optional<uint32_t> htp;     // generation: 79
  std::vector<ContextGraph> graphs;
};

// libQnnSystem.so, loaded at run time. Thread-safe.
class QnnSystemLibrary {
 public:
  // From the folder of libQnnHtp.so. Errors as QnnLibrary::Open.
  static Result<std::shared_ptr<const QnnSystemLibrary>> Open(
      const std::string& folder);
  QnnSystemLibrary(const QnnSystemLibrary&) = delete;
  QnnSystemLibrary& operator=(const QnnSystemLibrary&) = delete;

  // kBadInput when `binary` is no context binary, or visibly damaged.
  Result<ContextInfo> Read(ByteSpan binary) const;

 private:
  QnnSystemLibrary() = default;

  DynamicLibrary library_;
  abi::SystemFunctions api_ = {};
};

// The listing of `hexllm inspect`.
std::string DescribeContext(const ContextInfo& info);

}  // namespace hexllm::htp

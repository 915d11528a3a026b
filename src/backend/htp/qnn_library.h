// The vendor's library libQnnHtp.so, loaded at run time: finding, version
// handshake, function table, error texts. The only place that opens it. Not
// linked against, not shipped: scripts/setup-qnn fetches it, or the user points
// to an installed SDK.
//
// Thread-safe once open. Nothing of the library reaches our stdout or stderr:
// what its start-up code prints is dropped, what it logs goes to QnnLog.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backend/htp/qnn_abi.h"
#include "base/status.h"

namespace hexllm::htp {

class QnnLibrary {
 public:
  // Loads libQnnHtp.so from `folder`. kEnvironment when it is not there, cannot
  // be loaded or has no HTP provider; kUnsupported, naming both versions, when
  // it does not speak core API 2.32 or a later 2.x.
  static Result<std::shared_ptr<const QnnLibrary>> Open(
      const std::string& folder);

  QnnLibrary(const QnnLibrary&) = delete;
  QnnLibrary& operator=(const QnnLibrary&) = delete;
  ~QnnLibrary();

  // Every function that abi::Functions names is there (checked by Open).
  const abi::Functions& api() const { return api_; }
  abi::Version core_version() const { return core_; }
  abi::Version backend_version() const { return backend_; }
  const std::string& folder() const { return folder_; }
  // "v2.51.0.260929": for artifacts and reports.
  const std::string& build_id() const { return build_id_; }

  // "QNN error 3110 from backendValidateOpConfig (op validation failed)": the
  // one form in which the library's numbers are shown.
  std::string ErrorText(std::string_view call, uint64_t code) const;
  // Ok for 0, else an Error of `code` with ErrorText and, when the library
  // logged any since the last call, its first error lines.
  Status Check(std::string_view call, uint64_t result,
               ErrorCode code = ErrorCode::kEnvironment) const;

 private:
  QnnLibrary() = default;
  Status Resolve();

  void* handle_ = nullptr;
  std::string folder_;
  abi::Functions api_ = {};
  abi::Version core_ = {};
  abi::Version backend_ = {};
  std::string build_id_;
};

}  // namespace hexllm::htp

// The vendor's library libQnnHtp.so, loaded at run time: finding, version
// handshake, function table, error texts. The only place that opens it. Not
// linked against, not shipped: scripts/setup-qnn fetches it, or the user points
// to an installed SDK.
//
// Thread-safe once open. Nothing of the library reaches our stdout or stderr:
// what its start-up code prints is dropped, what it logs goes to QnnLog.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backend/htp/dynamic_library.h"
#include "backend/htp/qnn_abi.h"
#include "base/status.h"

namespace hexllm::htp {

// The versions of QNN's core API that we can use: this major, from this minor
// on (functions are only ever added), and the latest that was tested.
inline constexpr uint32_t kCoreMajor = 2;
inline constexpr uint32_t kOldestCoreMinor = 32;
inline constexpr uint32_t kTestedCoreMinor = 40;

inline constexpr const char* kLibraryFile = "libQnnHtp.so";

// The HTP provider that we can use. kEnvironment when no provider is for the
// HTP, kUnsupported, naming both versions, when none has a usable version.
Result<const abi::Provider*> ChooseProvider(
    std::span<const abi::Provider* const> providers);

class QnnLibrary {
 public:
  // Loads libQnnHtp.so from `folder`. kEnvironment when it is not there, cannot
  // be loaded or has no HTP provider; kUnsupported, naming both versions, when
  // it does not speak core API 2.32 or a later 2.x.
  static Result<std::shared_ptr<const QnnLibrary>> Open(
      const std::string& folder);

  QnnLibrary(const QnnLibrary&) = delete;
  QnnLibrary& operator=(const QnnLibrary&) = delete;

  // Every function that abi::Functions names is there (checked by Open).
  const abi::Functions& api() const { return api_; }
  abi::Version core_version() const { return core_; }
  abi::Version backend_version() const { return backend_; }
  const std::string& folder() const { return folder_; }
  // "v2.51.0.260929": for artifacts and reports.
  const std::string& build_id() const { return build_id_; }
  // True for the library of x86, which simulates the HTP: it has no shared
  // memory and no clocks, and loads no context with shared weights.
  bool is_simulator() const { return is_simulator_; }
  // A warning for the user when the library is newer than what was tested, or
  // nothing.
  std::string VersionNote() const;

  // "QNN error 3110 from backendValidateOpConfig (op validation failed)": the
  // one form in which the library's numbers are shown.
  std::string ErrorText(std::string_view call, uint64_t code) const;
  // Ok for 0, else an Error of `code` with ErrorText and the first error lines
  // that the library logged since the last Check, if any.
  Status Check(std::string_view call, uint64_t result,
               ErrorCode code = ErrorCode::kEnvironment) const;

 private:
  QnnLibrary() = default;
  Status Resolve();
  Status CheckFunctions() const;

  DynamicLibrary library_;
  std::string folder_;
  abi::Functions api_ = {};
  abi::Version core_ = {};
  abi::Version backend_ = {};
  bool is_simulator_ = false;
  std::string build_id_;
};

}  // namespace hexllm::htp

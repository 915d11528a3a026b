// What tests of the HTP need: the vendor's library, or the reason why the test
// is skipped.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/htp/qnn_session.h"

namespace hexllm::htp {

// The folder of libQnnHtp.so: $HEXLLM_QNN_LIB_DIR, or where scripts/setup-qnn
// puts it. Nothing when it is not there: GTEST_SKIP() << kNoQnn then.
std::optional<std::string> FindQnnForTests();
inline constexpr const char* kNoQnn =
    "no QNN libraries: run scripts/setup-qnn, or set HEXLLM_QNN_LIB_DIR";

// A session for `soc`. Fails the test when the library does not open.
std::shared_ptr<const QnnSession> OpenSessionForTests(const std::string& folder,
                                                      const std::string& soc);

}  // namespace hexllm::htp

// What tests of the HTP need: the vendor's library, or the reason why the test
// is skipped.
#pragma once

#include <memory>
#include <string>

#include "backend/htp/qnn_session.h"
#include "tests/support/qnn_folder.h"

namespace hexllm::htp {

using testing::FindQnnFolder;
using testing::kNoQnn;

// A session for `soc`. Fails the test when the library does not open.
std::shared_ptr<const QnnSession> OpenSessionForTests(const std::string& folder,
                                                      const std::string& soc);

}  // namespace hexllm::htp

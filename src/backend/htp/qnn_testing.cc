#include "backend/htp/qnn_testing.h"

#include <gtest/gtest.h>

namespace hexllm::htp {

std::shared_ptr<const QnnSession> OpenSessionForTests(const std::string& folder,
                                                      const std::string& soc) {
  auto library = QnnLibrary::Open(folder);
  EXPECT_TRUE(library.ok()) << library.error().message;
  if (!library.ok()) return nullptr;
  auto session = QnnSession::Open(*library, FindSoc(soc).value());
  EXPECT_TRUE(session.ok()) << session.error().message;
  return session.ok() ? *session : nullptr;
}

}  // namespace hexllm::htp

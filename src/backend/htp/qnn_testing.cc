#include "backend/htp/qnn_testing.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace hexllm::htp {

std::optional<std::string> FindQnnForTests() {
  const char* set = std::getenv("HEXLLM_QNN_LIB_DIR");
  const std::string folder =
      set != nullptr ? set : HEXLLM_SOURCE_DIR "/build/qnn";
  if (std::filesystem::exists(folder + "/libQnnHtp.so")) return folder;
  return std::nullopt;
}

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

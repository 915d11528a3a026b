// Where tests find Qualcomm's libraries.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace hexllm::testing {

inline constexpr const char* kNoQnn =
    "no QNN libraries: run scripts/setup-qnn, or set HEXLLM_QNN_LIB_DIR";

// $HEXLLM_QNN_LIB_DIR, or where scripts/setup-qnn puts them; nothing when they
// are not there.
inline std::optional<std::string> FindQnnFolder() {
  const char* named = std::getenv("HEXLLM_QNN_LIB_DIR");
  std::string folder =
      named != nullptr ? named : std::string(HEXLLM_SOURCE_DIR) + "/build/qnn";
  if (!std::filesystem::exists(folder + "/libQnnHtp.so")) return std::nullopt;
  return folder;
}

}  // namespace hexllm::testing

// The version of hexllm, for artifacts and --version. The build passes the
// number of CMakeLists.txt.
#pragma once

#include <string_view>

namespace hexllm {

inline constexpr std::string_view kVersion = HEXLLM_VERSION;

}  // namespace hexllm

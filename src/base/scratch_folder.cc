#include "base/scratch_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/quote.h"

namespace hexllm {

Result<ScratchFolder> ScratchFolder::Create(const std::string& parent) {
  std::string path = (std::filesystem::path(parent) / "hexllm.XXXXXX").string();
  if (::mkdtemp(path.data()) != nullptr) return ScratchFolder(std::move(path));
  return Error{ErrorCode::kEnvironment,
               fmt::format("{}: cannot make a folder for temporary files: {}",
                           Printable(parent), std::strerror(errno))};
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace hexllm

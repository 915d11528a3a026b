#include "checkpoint/side_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/mapped_file.h"

namespace hexllm {

Result<std::optional<std::string>> ReadSideFile(const std::string& directory,
                                                const std::string& name) {
  HX_CHECK(!name.empty() && name.find('/') == std::string::npos);
  const std::string path = (std::filesystem::path(directory) / name).string();
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return std::optional<std::string>();
  HX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > kMaxSideFileBytes) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{}: expected at most {} bytes, found {}", path,
                             kMaxSideFileBytes, file.bytes().size())};
  }
  return std::optional<std::string>(AsText(file.bytes()));
}

Result<std::optional<Json>> ReadSideJson(const std::string& directory,
                                         const std::string& name) {
  HX_ASSIGN_OR_RETURN(const auto text, ReadSideFile(directory, name));
  if (!text) return std::optional<Json>();
  auto json = ParseJson(*text);
  if (!json.ok()) {
    return std::move(json).error().With(
        (std::filesystem::path(directory) / name).string());
  }
  return std::optional<Json>(std::move(*json));
}

}  // namespace hexllm

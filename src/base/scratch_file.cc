#include "base/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/quote.h"

namespace hexllm {
namespace {

// A file in `folder` that is gone when it is closed; -1 and errno where there
// can be none.
int OpenNameless(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  // File systems without such files.
  std::string path = (std::filesystem::path(folder) / "hexllm.XXXXXX").string();
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

}  // namespace

Error ScratchFile::Failed() const {
  return Error{ErrorCode::kEnvironment,
               fmt::format("{}: temporary file for the {}: {}; TMPDIR may name "
                           "another folder",
                           Printable(folder_), what_, std::strerror(errno))};
}

Result<ScratchFile> ScratchFile::Create(std::string what) {
  ScratchFile file(std::move(what));
  std::error_code error;
  file.folder_ = std::filesystem::temp_directory_path(error).string();
  if (error) {
    file.folder_ = "the folder of TMPDIR";
    errno = error.value();
    return file.Failed();
  }
  const int fd = OpenNameless(file.folder_);
  if (fd < 0) return file.Failed();
  file.file_.reset(::fdopen(fd, "w+"));
  if (file.file_ != nullptr) return file;
  ::close(fd);
  return file.Failed();
}

Status ScratchFile::Write(ByteSpan bytes) {
  size_ += bytes.size();
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size())
    return OkStatus();
  return Failed();
}

Result<MappedFile> ScratchFile::Map() {
  if (std::fflush(file_.get()) != 0) return Failed();
  return MappedFile::Map(::fileno(file_.get()), what_);
}

}  // namespace hexllm

#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "base/scratch_file.h"

namespace hexllm {

namespace {

// A file in the folder of `path` that has no name yet; -1 and errno when that
// cannot be had.
int OpenUnnamed(const std::string& path) {
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  return ::open(folder.empty() ? "." : folder.c_str(),
                O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
}

// A new file beside `path` under a temporary name, which goes to `temp_path`.
int OpenTemporary(const std::string& path, std::string& temp_path) {
  temp_path = path + ".XXXXXX";
  const int fd = ::mkostemp(temp_path.data(), O_CLOEXEC);
  if (fd < 0) return fd;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  (void)::fchmod(fd, 0666 & ~mask);
  return fd;
}

// The number of the open file of this process that `path` names, as /dev/fd/3
// and /proc/self/fd/3 do; nothing for other paths.
std::optional<int> OpenFileNumber(const std::filesystem::path& path) {
  std::error_code error;
  const auto folder = std::filesystem::canonical(path.parent_path(), error);
  if (error || folder != std::filesystem::canonical("/proc/self/fd", error))
    return std::nullopt;
  const std::string name = path.filename().string();
  int number = -1;
  const char* const end = name.data() + name.size();
  const auto [stop, wrong] = std::from_chars(name.data(), end, number);
  if (wrong != std::errc() || stop != end) return std::nullopt;
  return number;
}

// Where symbolic links that `path` names lead, there or not: a file is put in
// its target's place, not in the link's. Not beyond an open file: it may be
// shared, and is no longer what has its name once that is replaced.
std::string WithoutLinks(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux allows; more are a circle
  std::filesystem::path target = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    if (OpenFileNumber(target) || !std::filesystem::is_symlink(target, error))
      break;
    target =
        target.parent_path() / std::filesystem::read_symlink(target, error);
  }
  return target.string();
}

// Opens what `path` names where that cannot be replaced; -1 and errno when it
// cannot be written to, nothing for a file, there or not.
std::optional<int> OpenStream(const std::string& path) {
  if (const auto number = OpenFileNumber(path)) {
    const int flags = ::fcntl(*number, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) {
      errno = EBADF;
      return -1;
    }
    return ::fcntl(*number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  }
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  if (!S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode)) return std::nullopt;
  return ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

Error CannotCreate(const std::string& path) {
  return Error{
      ErrorCode::kEnvironment,
      fmt::format("{}: cannot create: {}", path, std::strerror(errno))};
}

}  // namespace

Result<OutputFile> OutputFile::Create(const std::string& name) {
  const std::string path = WithoutLinks(name);
  if (const auto stream = OpenStream(path))
    return CreateForStream(name, *stream);
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return Error{
        ErrorCode::kEnvironment,
        fmt::format("{}: cannot write: expected a new name, a file or a "
                    "stream, found a folder or the like; choose another name",
                    name)};
  }
  std::string temp_path;
  int fd = OpenUnnamed(path);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    fd = OpenTemporary(path, temp_path);
  }
  if (fd < 0) return CannotCreate(path);
  return OutputFile(path, std::move(temp_path), fd);
}

// Bytes may be overwritten until Commit, so they wait in a file without a name.
Result<OutputFile> OutputFile::CreateForStream(const std::string& name,
                                               int stream) {
  if (stream < 0) return CannotCreate(name);
  OutputFile file(name, "", -1);
  file.stream_ = stream;
  HX_ASSIGN_OR_RETURN(const ScratchFile scratch, ScratchFile::Create(name));
  file.fd_ = ::fcntl(scratch.fd(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (file.fd_ < 0) return CannotCreate(name);
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temp_path_(std::move(other.temp_path_)),
      fd_(std::exchange(other.fd_, -1)),
      stream_(std::exchange(other.stream_, -1)),
      size_(other.size_) {}

OutputFile::~OutputFile() {
  if (stream_ >= 0) ::close(stream_);
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temp_path_.empty()) ::unlink(temp_path_.c_str());
}

Error OutputFile::Failed(const char* what) const {
  return Error{ErrorCode::kEnvironment,
               fmt::format("{}: {}: {}{}", path_, what, std::strerror(errno),
                           stream_ < 0 ? "; nothing was written" : "")};
}

Status OutputFile::WriteAll(uint64_t offset, ByteSpan bytes) {
  HX_CHECK(fd_ >= 0);
  while (!bytes.empty()) {
    const ssize_t n =
        ::pwrite(fd_, bytes.data(), std::min<size_t>(bytes.size(), 1u << 30),
                 static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return Failed(stream_ < 0 ? "cannot write"
                                : "cannot write to the folder of TMPDIR");
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return OkStatus();
}

Status OutputFile::Write(ByteSpan bytes) {
  HX_RETURN_IF_ERROR(WriteAll(size_, bytes));
  size_ += bytes.size();
  return OkStatus();
}

Status OutputFile::WriteAt(uint64_t offset, ByteSpan bytes) {
  HX_CHECK(offset <= size_ && bytes.size() <= size_ - offset);
  return WriteAll(offset, bytes);
}

Status OutputFile::PadTo(uint64_t align) {
  const std::vector<std::byte> zeros((align - size_ % align) % align);
  return Write(zeros);
}

bool OutputFile::TryName(const std::string& name) const {
  const std::string self = fmt::format("/proc/self/fd/{}", fd_);
  return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(),
                  AT_SYMLINK_FOLLOW) == 0;
}

Status OutputFile::GiveName() {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    std::string name = fmt::format("{}.{}-{}", path_, ::getpid(), i);
    if (TryName(name)) {
      temp_path_ = std::move(name);
      return OkStatus();
    }
    if (errno != EEXIST) break;
  }
  return Failed("cannot name the file");
}

Status OutputFile::PutInPlace() {
  if (temp_path_.empty()) {
    // One step where nothing is replaced. Else a process that is killed between
    // the two leaves the whole file under the name of the first.
    if (TryName(path_)) return OkStatus();
    HX_RETURN_IF_ERROR(GiveName());
  }
  if (::rename(temp_path_.c_str(), path_.c_str()) != 0)
    return Failed("cannot rename into place");
  return OkStatus();
}

Status OutputFile::CopyToStream() {
  std::fflush(stdout);  // its errors are those of who printed
  HX_ASSIGN_OR_RETURN(const MappedFile content, MappedFile::Map(fd_, path_));
  for (ByteSpan rest = content.bytes(); !rest.empty();) {
    const ssize_t n = ::write(stream_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Failed("cannot write");
    rest = rest.subspan(static_cast<size_t>(n));
  }
  return OkStatus();
}

Status OutputFile::Commit() {
  HX_CHECK(fd_ >= 0);
  if (stream_ >= 0) {
    HX_RETURN_IF_ERROR(CopyToStream());
  } else {
    if (::fsync(fd_) != 0) return Failed("cannot flush");
    HX_RETURN_IF_ERROR(PutInPlace());
  }
  ::close(std::exchange(fd_, -1));
  return OkStatus();
}

Status WriteFile(const std::string& path, ByteSpan bytes) {
  HX_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  HX_RETURN_IF_ERROR(file.Write(bytes));
  return file.Commit();
}

}  // namespace hexllm

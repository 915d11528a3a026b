#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace hexllm {
namespace {

Error OpenError(const std::string& path, const char* what) {
  return Error{ErrorCode::kEnvironment,
               fmt::format("{}: {}: {}", path, what, std::strerror(errno))};
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  // Not blocking: opening a pipe must fail below, not wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return OpenError(path, "cannot open");
  auto file = Map(fd, path);
  ::close(fd);
  return file;
}

Result<MappedFile> MappedFile::Map(int fd, const std::string& path) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return OpenError(path, "cannot stat");
  if (!S_ISREG(info.st_mode)) {
    return Error{ErrorCode::kEnvironment,
                 fmt::format("{}: expected a regular file", path)};
  }
  MappedFile file;
  file.path_ = path;
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return file;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return OpenError(path, "cannot map");
  file.data_ = static_cast<const std::byte*>(data);
  file.size_ = size;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::DropPages(ByteSpan part) const {
  if (part.empty()) return;
  HX_CHECK(part.data() >= data_ && part.data() + part.size() <= data_ + size_);
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first =
      (reinterpret_cast<uintptr_t>(part.data()) + page - 1) & ~(page - 1);
  const auto last =
      (reinterpret_cast<uintptr_t>(part.data()) + part.size()) & ~(page - 1);
  // Advice only: a refusal changes nothing but the memory figure.
  if (last > first)
    (void)::madvise(reinterpret_cast<void*>(first), last - first,
                    MADV_DONTNEED);
}

}  // namespace hexllm

#include "backend/htp/dynamic_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <utility>

#include "backend/htp/elf_size.h"
#include "base/mapped_file.h"
#include "base/quote.h"

namespace hexllm::htp {
namespace {

// Leads file descriptor 1 to /dev/null while it lives.
class SilentStdout {
 public:
  SilentStdout() {
    flockfile(stdout);
    std::fflush(stdout);
    // Fails when there is no stdout; then there is none afterwards either.
    saved_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0) return;
    if (null != STDOUT_FILENO) {
      dup2(null, STDOUT_FILENO);
      close(null);
    }
  }
  SilentStdout(const SilentStdout&) = delete;
  SilentStdout& operator=(const SilentStdout&) = delete;
  ~SilentStdout() {
    std::fflush(stdout);
    if (saved_ < 0) {
      close(STDOUT_FILENO);
    } else {
      dup2(saved_, STDOUT_FILENO);
      close(saved_);
    }
    funlockfile(stdout);
  }

 private:
  int saved_ = -1;
};

// That the file is as long as its headers say: loading a shorter one would end
// the process.
Status CheckWhole(const std::string& path) {
  HX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const uint64_t least = LeastElfBytes(file.bytes());
  if (file.bytes().size() >= least) return OkStatus();
  return Error{ErrorCode::kEnvironment,
               fmt::format("{}: expected at least {} bytes, found {}: it is "
                           "truncated; fetch it again with scripts/setup-qnn",
                           Printable(path), least, file.bytes().size())};
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::Load(const std::string& folder,
                                            const std::string& name) {
  DynamicLibrary library;
  library.path_ = (std::filesystem::path(folder) / name).string();
  std::error_code code;
  if (!std::filesystem::is_regular_file(library.path_, code)) {
    return Error{ErrorCode::kEnvironment,
                 fmt::format("{}: not found; get the QNN libraries with "
                             "scripts/setup-qnn, or name the folder of an "
                             "installed QAIRT SDK that holds {}",
                             Printable(library.path_), name)};
  }
  HX_RETURN_IF_ERROR(CheckWhole(library.path_));
  HX_RETURN_IF_ERROR(library.Open());
  return library;
}

Result<DynamicLibrary> DynamicLibrary::LoadFromSystem(const std::string& name) {
  DynamicLibrary library;
  library.path_ = name;
  HX_RETURN_IF_ERROR(library.Open());
  return library;
}

Status DynamicLibrary::Open() {
  {
    const SilentStdout silent;
    handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (handle_ != nullptr) return OkStatus();
  const char* why = dlerror();
  return Error{
      ErrorCode::kEnvironment,
      fmt::format("{}: cannot be loaded: {}; is it for this processor "
                  "and are its libraries beside it?",
                  Printable(path_), Printable(why == nullptr ? "" : why))};
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      path_(std::move(other.path_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* DynamicLibrary::Find(const char* symbol) const {
  return dlsym(handle_, symbol);
}

}  // namespace hexllm::htp

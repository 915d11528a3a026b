#include "base/scratch_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

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

namespace {

// The life of the child: nothing but system calls, since other threads of the
// parent may have held locks when it was forked.
[[noreturn]] void RemoveAtEnd(int end_of_parent, const char* folder) {
  ::setsid();  // no Ctrl-C
  ::dup2(end_of_parent, 0);
  ::close_range(1, ~0U, 0);  // who reads the parent's output sees its end
  char byte = 0;
  while (::read(0, &byte, 1) < 0 && errno == EINTR) {
  }
  ::execl("/bin/rm", "rm", "-rf", "--", folder, nullptr);
  ::_exit(1);
}

}  // namespace

// Without a child (no memory) all is the same but for kills.
ScratchFolder::ScratchFolder(std::string path) : path_(std::move(path)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  keeper_ = ::fork();
  if (keeper_ == 0) {
    ::close(ends[1]);
    RemoveAtEnd(ends[0], path_.c_str());
  }
  ::close(ends[0]);
  alive_ = ends[1];
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      keeper_(std::exchange(other.keeper_, -1)),
      alive_(std::exchange(other.alive_, -1)) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  if (alive_ >= 0) ::close(alive_);
  if (keeper_ > 0) ::waitpid(keeper_, nullptr, 0);
}

}  // namespace hexllm

#include "base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace hexllm {
namespace {

constexpr char kStep = '.';
constexpr int kExitBug = 70;  // base/check.h

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the parent is gone
    text.remove_prefix(static_cast<size_t>(n));
  }
}

// "0" for success, else the code's number, a space, and the message.
std::string EncodeStatus(const Status& status) {
  if (status.ok()) return "0";
  return fmt::format("{} {}", static_cast<int>(status.error().code),
                     status.error().message);
}

Status Guarded(const ChildProcess::Body& body, const ChildChannel& channel) {
  try {
    return body(channel);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kEnvironment, "out of memory"};
  }
}

[[noreturn]] void RunChild(const ChildProcess::Body& body, pid_t parent,
                           int news, int memory) {
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it was faster
  WriteAll(news, EncodeStatus(Guarded(body, ChildChannel(news, memory))));
  ::_exit(0);  // nothing of the parent's is flushed or destroyed
}

Error SystemError(const char* what) {
  return {ErrorCode::kEnvironment,
          fmt::format("cannot {}: {}", what, std::strerror(errno))};
}

void Close(int fd) {
  const int saved = errno;
  if (fd >= 0) ::close(fd);
  errno = saved;
}

}  // namespace

void ChildChannel::Step() const { WriteAll(news_, {&kStep, 1}); }

Result<std::span<std::byte>> ChildChannel::Allocate(uint64_t bytes) const {
  if (bytes == 0) return std::span<std::byte>();
  HX_RETURN_IF_ERROR(Shorten(bytes));
  void* data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
  if (data == MAP_FAILED) return SystemError("make room for the result");
  return std::span(static_cast<std::byte*>(data), bytes);
}

Status ChildChannel::Shorten(uint64_t bytes) const {
  if (::ftruncate(memory_, static_cast<off_t>(bytes)) == 0) return OkStatus();
  return SystemError("make room for the result");
}

Result<ChildProcess> ChildProcess::Start(const Body& body) {
  const int memory = ::memfd_create("hexllm", MFD_CLOEXEC);
  if (memory < 0) return SystemError("make room for the result");
  int ends[2] = {-1, -1};
  const bool piped = ::pipe2(ends, O_CLOEXEC) == 0;
  const pid_t parent = ::getpid();
  const pid_t pid = piped ? ::fork() : -1;
  if (pid == 0) RunChild(body, parent, ends[1], memory);
  Close(ends[1]);
  if (pid > 0) return ChildProcess(pid, ends[0], memory);
  Close(ends[0]);
  Close(memory);
  return SystemError("start a process");
}

Result<ChildOutcome> ChildProcess::Run(const Body& body) {
  HX_ASSIGN_OR_RETURN(ChildProcess child, Start(body));
  return std::move(child).Finish();
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      news_fd_(std::exchange(other.news_fd_, -1)),
      memory_fd_(std::exchange(other.memory_fd_, -1)),
      news_(std::move(other.news_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(news_fd_, other.news_fd_);
  std::swap(memory_fd_, other.memory_fd_);
  std::swap(news_, other.news_);
  return *this;
}

ChildProcess::~ChildProcess() {
  Close(news_fd_);
  Close(memory_fd_);
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool ChildProcess::Read() {
  char buffer[4096];
  ssize_t n = 0;
  do {
    n = ::read(news_fd_, buffer, sizeof(buffer));
  } while (n < 0 && errno == EINTR);
  if (n > 0) news_.append(buffer, static_cast<size_t>(n));
  return n > 0;
}

int64_t ChildProcess::steps() const {
  return static_cast<int64_t>(
      std::min(news_.find_first_not_of(kStep), news_.size()));
}

Status ChildProcess::StatusOf(int wait_status) const {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return Error{ErrorCode::kEnvironment,
                 fmt::format("its process was ended by signal {} ({}){}",
                             signal, ::strsignal(signal),
                             signal == SIGKILL ? "; was memory short?" : "")};
  }
  // A failed check of ours, which the child has reported: our bug as well.
  HX_CHECK(WEXITSTATUS(wait_status) != kExitBug);
  const std::string text = news_.substr(static_cast<size_t>(steps()));
  if (text == "0") return OkStatus();
  if (text.find(' ') == 1)
    return Error{static_cast<ErrorCode>(text[0] - '0'), text.substr(2)};
  return Error{ErrorCode::kEnvironment, "its process ended before it was done"};
}

Result<ChildOutcome> ChildProcess::Finish() && {
  while (Read()) {
  }
  int status = 0;
  struct rusage usage = {};
  while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  HX_RETURN_IF_ERROR(StatusOf(status));
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  ChildOutcome outcome{
      .bytes = {},
      .cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime),
      .peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024};
  HX_ASSIGN_OR_RETURN(outcome.bytes,
                      MappedFile::Map(memory_fd_, "memory of a child"));
  return outcome;
}

}  // namespace hexllm

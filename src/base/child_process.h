// Runs a function in a process of its own, a fork of this one: for libraries
// that crash, that keep memory, or whose results hang on what they did before.
// The child sees the memory as it is at the fork, and what it changes stays its
// own: a status, a count of steps and one array of bytes come back. Used by
// lowerings. Linux.
//
// A child ends with its parent, however that ends. Of the parent's threads it
// has the one that forked: fork where no other thread holds a lock.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/mapped_file.h"
#include "base/status.h"

namespace hexllm {

// What the function in the child has to talk to its parent.
class ChildChannel {
 public:
  ChildChannel(int news, int memory) : news_(news), memory_(memory) {}

  // Says that one more step is done.
  void Step() const;
  // Memory for the bytes that come back; once. kEnvironment when there is none.
  Result<std::span<std::byte>> Allocate(uint64_t bytes) const;
  // Only the first `bytes` of them come back.
  Status Shorten(uint64_t bytes) const;

 private:
  int news_;
  int memory_;
};

// What a child came to.
struct ChildOutcome {
  MappedFile bytes;  // what it put into Allocate's memory, or nothing
  double cpu_seconds = 0;
  uint64_t peak_rss_bytes = 0;
};

// Move-only. Not thread-safe.
class ChildProcess {
 public:
  using Body = std::function<Status(const ChildChannel&)>;

  // Starts `body` in a child. kEnvironment when the system has no room for it.
  static Result<ChildProcess> Start(const Body& body);
  // Starts it and waits for its end.
  static Result<ChildOutcome> Run(const Body& body);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  // Kills the child if it still runs.
  ~ChildProcess();

  // Readable when there is news.
  int fd() const { return news_fd_; }
  // Waits for news and takes it in. False when there is no more to come.
  bool Read();
  // Steps that are done, of those whose news were read.
  int64_t steps() const;
  // Waits for the end. The error that the body returned; kEnvironment when a
  // signal ended the child, for instance where memory was short.
  Result<ChildOutcome> Finish() &&;

 private:
  ChildProcess(pid_t pid, int news_fd, int memory_fd)
      : pid_(pid), news_fd_(news_fd), memory_fd_(memory_fd) {}
  Status StatusOf(int wait_status) const;

  pid_t pid_ = -1;
  int news_fd_ = -1;
  int memory_fd_ = -1;
  std::string news_;  // a '.' for each step, then what EncodeStatus made
};

}  // namespace hexllm

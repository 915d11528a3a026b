// A read-only memory-mapped file. Used by the checkpoint and artifact readers,
// so that weights are streamed from the page cache and never copied as a whole.
// Not for writing: see base/output_file.h.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace hexllm {

// Owns one mapping; move-only. Spans from bytes() must not outlive it.
// Thread-safe once open.
class MappedFile {
 public:
  // Maps `path` (a regular file; empty ones give an empty span). kEnvironment
  // with the path when it cannot be opened.
  static Result<MappedFile> Open(const std::string& path);
  // The same for the open regular file `fd`, which stays the caller's; `path`
  // is what messages call it.
  static Result<MappedFile> Map(int fd, const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  ByteSpan bytes() const& { return {data_, size_}; }
  ByteSpan bytes() && = delete;

  // Tells the kernel that `part` of the mapping will not be needed soon, so
  // that its pages stop counting as resident. Contents stay readable. `part`
  // must lie inside bytes().
  void DropPages(ByteSpan part) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hexllm

// A folder for files on the way: for libraries that write to a path of their
// own. Removed with all that is in it, also when the process is killed: a child
// outlives it for that. Used by compile/ and cli/. Not for results: those are
// base/output_file.h.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/status.h"

namespace hexllm {

// Move-only owner of a new folder.
class ScratchFolder {
 public:
  // A folder in `parent` that only this user can read. kEnvironment when
  // `parent` is missing or cannot be written to.
  static Result<ScratchFolder> Create(const std::string& parent);

  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path);
  std::string path_;  // empty when moved from
  // The child, which waits for the end of what this descriptor writes to; -1 =
  // there is none.
  pid_t keeper_ = -1;
  int alive_ = -1;
};

}  // namespace hexllm

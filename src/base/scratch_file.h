// A file without a name for what does not fit into memory: written once from
// begin to end, then mapped. Lives as long as its mapping. Used by checkpoint/
// and compile/. Not for results but those on their way to a stream: see
// base/output_file.h.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "base/status.h"

namespace hexllm {

// Move-only.
class ScratchFile {
 public:
  // In the folder for temporary files: TMPDIR, else the system's. `what` is
  // what messages and the mapping call it. kEnvironment when the folder is
  // missing or cannot be written to.
  static Result<ScratchFile> Create(std::string what);

  uint64_t size() const { return size_; }
  // Stays the file's; a duplicate lives on without it.
  int fd() const { return ::fileno(file_.get()); }
  // Appends. kEnvironment when there is no room.
  Status Write(ByteSpan bytes);
  // All that was written; nothing may be written afterwards.
  Result<MappedFile> Map();

 private:
  explicit ScratchFile(std::string what) : what_(std::move(what)) {}
  Error Failed() const;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string what_;
  std::string folder_;
  std::unique_ptr<std::FILE, Close> file_;
  uint64_t size_ = 0;
};

}  // namespace hexllm

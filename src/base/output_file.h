// A file that appears whole or not at all: written without a name in the
// target's folder (Linux O_TMPFILE; under a temporary name on file systems
// without it), named by Commit. So a process that is killed leaves nothing
// behind. What is no file, such as /dev/stdout or a pipe, gets the bytes when
// Commit is called. Used for every file hexllm writes. Not thread-safe.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace hexllm {

class OutputFile {
 public:
  // Creates the file beside `name`, or beside what it leads to when it is a
  // symbolic link. A pipe or character device is opened, and waited for as the
  // system does; one of the process's open files (/dev/stdout, /dev/fd/3) is
  // written to where it stands, a regular one, too. kEnvironment when the
  // folder is missing or not writable, and for a folder, a disk or a socket.
  static Result<OutputFile> Create(const std::string& name);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  // Drops the file unless Commit succeeded.
  ~OutputFile();

  // Appends. kEnvironment (e.g. disk full) names the file.
  Status Write(ByteSpan bytes);
  // Overwrites [offset, offset + bytes.size()), which must already have been
  // written.
  Status WriteAt(uint64_t offset, ByteSpan bytes);
  // Appends zero bytes until the size is a multiple of `align`.
  Status PadTo(uint64_t align);
  uint64_t size() const { return size_; }
  // Flushes to disk and puts the file in the place of what is at the path, or
  // copies it to the stream, behind what was printed. Nothing may be written
  // afterwards.
  Status Commit();

 private:
  OutputFile(std::string path, std::string temp_path, int fd)
      : path_(std::move(path)), temp_path_(std::move(temp_path)), fd_(fd) {}
  // Takes `stream`.
  static Result<OutputFile> CreateForStream(const std::string& name,
                                            int stream);
  Error Failed(const char* what) const;
  Status WriteAll(uint64_t offset, ByteSpan bytes);
  // Gives a file without a name this one; false and errno when it cannot be.
  bool TryName(const std::string& name) const;
  // Gives a file without a name a temporary one.
  Status GiveName();
  Status PutInPlace();
  Status CopyToStream();

  std::string path_;
  std::string temp_path_;  // empty while the file has no name
  int fd_ = -1;
  int stream_ = -1;  // gets what `fd_` holds; -1 = the file is put in place
  uint64_t size_ = 0;
};

// Writes `bytes` to `path` in one go, whole or not at all.
Status WriteFile(const std::string& path, ByteSpan bytes);

}  // namespace hexllm

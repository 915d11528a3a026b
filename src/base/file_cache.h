// A folder of results that took long to make and are found again by a key that
// says what they were made of. Used by compile/ and lowerings (--cache-dir).
// Nothing in it is needed: it may be deleted at any time.
//
// Processes may share a folder. An entry is one file, "<key>.bin", that appears
// whole or not at all (base/output_file.h) and holds its key and a checksum.
// One that is damaged is reported and counts as missing; storing replaces it.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/mapped_file.h"
#include "base/progress.h"
#include "base/status.h"

namespace hexllm {

// Immutable: thread-safe.
class FileCache {
 public:
  // Makes the folder where it is missing. Removes what killed processes left in
  // it, on file systems where that is possible, once it is a day old.
  // kEnvironment when there is no such folder and none can be made, and when
  // nothing can be written there.
  static Result<FileCache> Open(const std::string& folder);

  // For the key of an entry of that kind ("context"). This program's own bytes
  // are in it already: another build of hexllm finds nothing of this one's.
  Hasher StartKey(std::string_view kind) const;

  struct Entry {
    MappedFile file;
    ByteSpan bytes;  // lies in `file`
  };
  // Reads and checks all of the entry. Nothing when there is none; or, with a
  // warning, when it cannot be read or is damaged.
  std::optional<Entry> Find(const Digest& key, ProgressSink& progress) const;
  // Adds or replaces an entry. A disk that does not take it is a warning: the
  // result is there all the same.
  void Store(const Digest& key, ByteSpan bytes, ProgressSink& progress) const;

 private:
  FileCache(std::string folder, Digest program)
      : folder_(std::move(folder)), program_(program) {}
  std::string PathOf(const Digest& key) const;

  std::string folder_;
  Digest program_;
};

}  // namespace hexllm

// The items of an evaluation that are done, in a file that grows line by line,
// so that a run that was interrupted goes on where it was (--resume F). Used by
// eval/run. Not thread-safe, and for one process at a time (checked by a lock).
//
// JSON lines: first the run's description, then one item each:
//   {"task": "wikitext", "stage": "fp", "digest": "...", "item": 3, ...}
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "eval/results.h"

namespace hexllm {

class Journal {
 public:
  // Opens `path`, or makes it. `run` says what is evaluated and how. A last
  // line that was not finished is cut off. kUsage when the file is of another
  // run or another process has it open, kBadInput for other damage,
  // kEnvironment when it cannot be read or written.
  static Result<Journal> Open(const std::string& path, const Json& run);

  // The stored item, or null.
  const Json* Find(const std::string& task, const std::string& stage,
                   uint64_t index) const;
  // Appends; on disk when it returns, as far as the process is concerned.
  // `digest` is of what the item's scores depend on.
  Status Add(const std::string& task, const std::string& stage,
             const std::string& digest, const ItemResult& item);

  const std::string& path() const { return path_; }

 private:
  struct CloseFile {
    void operator()(int* fd) const;
  };
  explicit Journal(std::string path) : path_(std::move(path)) {}
  Status ReadLines(std::string_view text, const Json& run);
  Status Append(const Json& line);

  std::string path_;
  std::unique_ptr<int, CloseFile> fd_;
  std::map<std::string, Json> items_;  // by task, stage and index
};

}  // namespace hexllm

// Schedules of several graphs as one file to look at: a Chrome trace for
// ui.perfetto.dev, in which each graph is a process and times are microseconds
// (the compiler writes core cycles). Used by compile/estimate.
#pragma once

#include <string>

#include "base/output_file.h"
#include "base/status.h"

namespace hexllm::htp {

// One graph's schedule, as the compiler wrote it.
struct Schedule {
  std::string path;
  std::string title;    // "kv on SM8750"
  double core_mhz = 0;  // of its cycles (GraphEstimate); > 0
};

// Writes schedules into one file, event by event. Not thread-safe.
class TraceMerger {
 public:
  // The file appears with Finish, whole or not at all.
  static Result<TraceMerger> Create(const std::string& path);

  // Appends the events of `schedule`; they keep their threads, names and
  // arguments. kBadInput when it is no JSON.
  Status Add(const Schedule& schedule);
  Status Finish();

 private:
  explicit TraceMerger(OutputFile file) : file_(std::move(file)) {}
  OutputFile file_;
  int processes_ = 0;
};

}  // namespace hexllm::htp

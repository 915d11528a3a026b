// What commands print: results on stdout (checked: a full disk behind a
// redirect is an error), progress on stderr.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/status.h"

namespace hexllm::cli {

// Writes to stdout. kEnvironment when stdout does not take it.
Status Print(std::string_view text);
// Print and hand to the reader at once: for streamed answers.
Status PrintNow(std::string_view text);
Status FlushOutput();

// Writes to stderr: messages, progress, statistics. A stderr that takes nothing
// is no reason to fail.
void PrintNote(std::string_view text);

// "hexllm: error: ..." on stderr, as one line.
void PrintError(std::string_view message);

// `text` as one line that a terminal shows as it is: control characters become
// spaces.
std::string OneLine(std::string_view text);

// Where files on the way go: TMPDIR, else the system's.
std::string TemporaryFolder();

// Shows long work on stderr: one line that is redrawn on a terminal, one plain
// line per step elsewhere. Quiet: warnings only.
class StderrProgress final : public ProgressSink {
 public:
  enum class Verbosity : uint8_t { kNormal, kQuiet };
  explicit StderrProgress(Verbosity verbosity);
  // Drops the line of a step that was not finished: an error message follows.
  ~StderrProgress() override;

  void Begin(std::string_view step, std::string_view unit,
             int64_t total) override;
  void Update(int64_t done) override;
  void Warn(std::string_view message) override;
  void Note(std::string_view message) override;
  // Ends the last step: all went well.
  void Finish();

 private:
  using Clock = std::chrono::steady_clock;
  void Draw(Clock::time_point now);
  std::string StepLine(Clock::time_point now) const;
  void ClearLine() const;

  const Verbosity verbosity_;
  const bool terminal_;
  bool active_ = false;
  std::string step_, unit_;
  int64_t total_ = 0;
  int64_t done_ = 0;
  Clock::time_point started_{};
  Clock::time_point drawn_{};
};

}  // namespace hexllm::cli

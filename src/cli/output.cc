#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "runtime/statistics.h"

namespace hexllm::cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);

Error StdoutError() {
  return Error{
      ErrorCode::kEnvironment,
      fmt::format("standard output: cannot write: {}", std::strerror(errno))};
}

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Status Print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    return StdoutError();
  return OkStatus();
}

Status FlushOutput() {
  if (std::fflush(stdout) != 0) return StdoutError();
  return OkStatus();
}

Status PrintNow(std::string_view text) {
  HX_RETURN_IF_ERROR(Print(text));
  return FlushOutput();
}

void PrintNote(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  static_cast<void>(std::fflush(stderr));
}

void PrintError(std::string_view message) {
  PrintNote(fmt::format("hexllm: error: {}\n", OneLine(message)));
}

std::string OneLine(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '\x7f') c = ' ';
  }
  return line;
}

std::string TemporaryFolder() {
  std::error_code error;
  const auto folder = std::filesystem::temp_directory_path(error);
  return error ? "." : folder.string();
}

StderrProgress::StderrProgress(Verbosity verbosity)
    : verbosity_(verbosity), terminal_(::isatty(STDERR_FILENO) == 1) {}

StderrProgress::~StderrProgress() {
  if (active_ && terminal_ && verbosity_ == Verbosity::kNormal) {
    PrintNote("\r\033[K");
  }
}

void StderrProgress::Begin(std::string_view step, std::string_view unit,
                           int64_t total) {
  Finish();
  step_ = step;
  unit_ = unit;
  total_ = total;
  done_ = 0;
  started_ = Clock::now();
  drawn_ = {};
  active_ = true;
  if (terminal_) Draw(started_);
}

void StderrProgress::Update(int64_t done) {
  done_ = done;
  if (!terminal_ || verbosity_ == Verbosity::kQuiet) return;
  const auto now = Clock::now();
  if (now - drawn_ >= kRedraw) Draw(now);
}

// "weights: 120/273 tensors, 310.2 tensors/s, ETA 0.5 s, RSS 312 MB"
std::string StderrProgress::StepLine(Clock::time_point now) const {
  const double elapsed = Seconds(now - started_);
  std::string line = step_;
  if (total_ > 0) {
    line += fmt::format(": {}/{} {}", done_, total_, unit_);
    if (done_ > 0 && elapsed > 0)
      line += fmt::format(", {:.1f} {}/s", static_cast<double>(done_) / elapsed,
                          unit_);
    if (done_ > 0 && done_ < total_)
      line += fmt::format(", ETA {:.1f} s",
                          elapsed / static_cast<double>(done_) *
                              static_cast<double>(total_ - done_));
  }
  return fmt::format("{}, {:.2f} s, peak RSS {} MB", line, elapsed,
                     PeakRssBytes() >> 20);
}

void StderrProgress::Draw(Clock::time_point now) {
  if (verbosity_ == Verbosity::kQuiet) return;
  drawn_ = now;
  PrintNote(fmt::format("\r\033[K{}", StepLine(now)));
}

void StderrProgress::ClearLine() const {
  if (active_ && terminal_ && verbosity_ == Verbosity::kNormal)
    PrintNote("\r\033[K");
}

void StderrProgress::Warn(std::string_view message) {
  ClearLine();
  PrintNote(fmt::format("hexllm: warning: {}\n", OneLine(message)));
}

void StderrProgress::Note(std::string_view message) {
  if (verbosity_ == Verbosity::kQuiet) return;
  ClearLine();
  PrintNote(fmt::format("{}\n", OneLine(message)));
}

void StderrProgress::Finish() {
  if (!active_) return;
  active_ = false;
  if (verbosity_ == Verbosity::kQuiet) return;
  PrintNote(fmt::format("{}{}\n", terminal_ ? "\r\033[K" : "",
                        StepLine(Clock::now())));
}

}  // namespace hexllm::cli

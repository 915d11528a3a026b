#include "backend/htp/qnn_log.h"

#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quote.h"

namespace hexllm::htp {
namespace {

constexpr size_t kMaxLines = 4;
constexpr size_t kMaxLineBytes = 240;

// Logged at error level for every graph that goes well (API 2.40).
constexpr std::string_view kMarker = "<E> ";  // before every error
constexpr std::string_view kHarmless = "unexpected GraphHtpSettings option";

struct Lines {
  std::mutex mutex;
  std::vector<std::string> lines;
};

// The callback carries no pointer of ours: this is the one static of the
// backend. Never destroyed, as threads of the library may log until the end.
Lines& Collected() {
  static Lines& lines = *new Lines;
  return lines;
}

}  // namespace

void CollectLogLine(const char* format, uint32_t /*level*/, uint64_t /*time*/,
                    va_list arguments) {
  char text[1024];
  if (format == nullptr ||
      std::vsnprintf(text, sizeof(text), format, arguments) < 0) {
    return;
  }
  std::string_view line = text;
  const size_t marker = line.find(kMarker);
  if (marker != line.npos) line.remove_prefix(marker + kMarker.size());
  while (!line.empty() && (line.back() == '\n' || line.back() == ' '))
    line.remove_suffix(1);
  if (line.empty() || line.find(kHarmless) != line.npos) return;
  std::string shown = Printable(line, kMaxLineBytes);
  Lines& collected = Collected();
  const std::lock_guard lock(collected.mutex);
  std::vector<std::string>& lines = collected.lines;
  if (lines.size() < kMaxLines && (lines.empty() || lines.back() != shown))
    lines.push_back(std::move(shown));
}

std::string TakeLogLines() {
  Lines& collected = Collected();
  const std::lock_guard lock(collected.mutex);
  std::string text;
  for (const std::string& line : collected.lines) {
    if (!text.empty()) text += "; ";
    text += line;
  }
  collected.lines.clear();
  return text;
}

}  // namespace hexllm::htp

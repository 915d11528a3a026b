#include "backend/htp/qnn_log.h"

#include <cstdio>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/quote.h"

namespace hexllm::htp {
namespace {

constexpr size_t kMaxLines = 4;
constexpr size_t kMaxLineBytes = 240;

// Logged at error level for every graph that goes well (API 2.40).
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
  while (!line.empty() && (line.back() == '\n' || line.back() == ' '))
    line.remove_suffix(1);
  if (line.empty() || line.find(kHarmless) != line.npos) return;
  Lines& collected = Collected();
  const std::lock_guard lock(collected.mutex);
  if (collected.lines.size() < kMaxLines)
    collected.lines.push_back(Printable(line, kMaxLineBytes));
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

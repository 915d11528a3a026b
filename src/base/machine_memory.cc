#include "base/machine_memory.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <utility>

#include "base/quote.h"

namespace hexllm {
namespace {

// The number of kB behind `key` in a file of the kernel's.
std::optional<uint64_t> ReadField(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string name; file >> name;) {
    uint64_t kilobytes = 0;
    if (name == key && file >> kilobytes) return kilobytes * 1024;
    file.clear();
  }
  return std::nullopt;
}

std::optional<uint64_t> ReadNumber(const char* path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // no such file, or "max"
}

// The letter behind a number: bits to shift by.
std::optional<int> UnitShift(std::string_view unit) {
  constexpr std::pair<char, int> kUnits[] = {
      {'K', 10}, {'M', 20}, {'G', 30}, {'T', 40}};
  for (const auto& [letter, shift] : kUnits) {
    const std::string name(1, letter);
    if (unit == name || unit == name + "B" || unit == name + "iB") return shift;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> AvailableMemory() {
  std::optional<uint64_t> free = ReadField("/proc/meminfo", "MemAvailable:");
  const auto limit = ReadNumber("/sys/fs/cgroup/memory.max");
  const auto used = ReadNumber("/sys/fs/cgroup/memory.current");
  if (limit && used) {
    free =
        std::min(free.value_or(UINT64_MAX), *limit - std::min(*limit, *used));
  }
  return free;
}

uint64_t OwnMemory() {
  return ReadField("/proc/self/status", "RssAnon:").value_or(0);
}

void ReturnFreedMemory() { ::malloc_trim(0); }

Result<uint64_t> ParseMemorySize(std::string_view text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  const auto shift =
      UnitShift({end, static_cast<size_t>(text.data() + text.size() - end)});
  const double bytes = shift ? std::ldexp(number, *shift) : 0;
  if (error == std::errc() && bytes >= 1 && bytes < 0x1p63)
    return static_cast<uint64_t>(bytes);
  return Error{ErrorCode::kUsage,
               fmt::format("expected a size such as 8G or 500M, found {}",
                           Quoted(text))};
}

std::string MemorySizeText(uint64_t bytes) {
  const auto megabytes = static_cast<double>(bytes) / 0x1p20;
  return megabytes < 1024 ? fmt::format("{:.0f} MB", megabytes)
                          : fmt::format("{:.2f} GB", megabytes / 1024);
}

}  // namespace hexllm

#include "runtime/statistics.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstring>

namespace hexllm {
namespace {

double Rate(double count, double seconds) {
  return count > 0 && seconds > 0 ? count / seconds : 0;
}

Json TurnToJson(const TurnStatistics& turn) {
  Json json = Json::object();
  json["prompt_tokens"] = turn.prompt_tokens;
  json["reused_tokens"] = turn.reused_tokens;
  json["new_tokens"] = turn.new_tokens;
  json["prompt_seconds"] = turn.prompt_seconds;
  json["prompt_tokens_per_second"] = PromptTokensPerSecond(turn);
  json["first_token_seconds"] = turn.first_token_seconds;
  json["decode_seconds"] = turn.decode_seconds;
  json["decode_tokens_per_second"] = DecodeTokensPerSecond(turn);
  return json;
}

// VmHWM of /proc/self/status in bytes; 0 where there is none.
uint64_t ReadVmHwm() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  char line[256];
  unsigned long long kilobytes = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::sscanf(line, "VmHWM: %llu kB", &kilobytes) == 1) break;
  }
  std::fclose(file);
  return kilobytes * 1024;
}

}  // namespace

double PromptTokensPerSecond(const TurnStatistics& turn) {
  return Rate(turn.prompt_tokens, turn.prompt_seconds);
}

double DecodeTokensPerSecond(const TurnStatistics& turn) {
  return Rate(static_cast<double>(turn.new_tokens) - 1, turn.decode_seconds);
}

uint64_t PeakRssBytes() {
  if (const uint64_t bytes = ReadVmHwm(); bytes != 0) return bytes;
  struct rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

Json StatisticsToJson(const Statistics& statistics) {
  Json json = Json::object();
  json["load_seconds"] = statistics.load_seconds;
  json["peak_rss_bytes"] = statistics.peak_rss_bytes;
  json["turns"] = Json::array();
  for (const TurnStatistics& turn : statistics.turns)
    json["turns"].push_back(TurnToJson(turn));
  return json;
}

std::string StatisticsToText(const Statistics& statistics) {
  std::string text = fmt::format(
      "Loaded in {:.2f} s, peak memory {:.0f} MB.", statistics.load_seconds,
      static_cast<double>(statistics.peak_rss_bytes) / 1e6);
  if (statistics.turns.empty()) return text;
  const TurnStatistics& turn = statistics.turns.back();
  text += fmt::format(" Prompt: {} tokens in {:.2f} s ({:.1f} tok/s)",
                      turn.prompt_tokens, turn.prompt_seconds,
                      PromptTokensPerSecond(turn));
  if (turn.reused_tokens > 0)
    text += fmt::format(", {} more reused", turn.reused_tokens);
  text += ".";
  if (turn.new_tokens == 0) return text + " No new token.";
  return text + fmt::format(
                    " First token after {:.2f} s; {} new tokens, "
                    "{:.1f} tok/s.",
                    turn.first_token_seconds, turn.new_tokens,
                    DecodeTokensPerSecond(turn));
}

}  // namespace hexllm

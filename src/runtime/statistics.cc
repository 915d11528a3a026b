#include "runtime/statistics.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/check.h"

namespace hexllm {
namespace {

double Rate(double count, double seconds) {
  return count > 0 && seconds > 0 ? count / seconds : 0;
}

constexpr double kMilli = 1e3;

Json TurnToJson(const TurnStatistics& turn) {
  Json json = Json::object();
  json["prompt_tokens"] = turn.prompt_tokens;
  json["cached_tokens"] = turn.cached_tokens;
  json["reused_tokens"] = turn.reused_tokens;
  json["reuse_end"] = ReuseEndName(turn.reuse_end);
  json["new_tokens"] = turn.new_tokens;
  json["decode_steps"] = {{"plain", turn.steps.plain},
                          {"guesses", turn.steps.guesses},
                          {"lookahead", turn.steps.lookahead}};
  json["accepted_per_step"] = AcceptedPerStep(turn.steps);
  json["evictions"] = turn.evictions;
  json["prompt_ms"] = kMilli * turn.prompt_seconds;
  json["prompt_tokens_per_second"] = PromptTokensPerSecond(turn);
  json["ttft_ms"] = kMilli * turn.first_token_seconds;
  json["decode_ms"] = kMilli * turn.decode_seconds;
  json["decode_tokens_per_second"] = DecodeTokensPerSecond(turn);
  json["cpu_ms_per_token"] =
      turn.new_tokens > 1
          ? kMilli * turn.decode_cpu_seconds / (turn.new_tokens - 1)
          : 0.0;
  json["rss_bytes"] = turn.rss_bytes;
  return json;
}

// A line "FIELD: 123 kB" of /proc/self/status in bytes; 0 where there is none.
uint64_t ReadProcessStatus(const char* field) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  const size_t length = std::strlen(field);
  char line[256];
  unsigned long long kilobytes = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::strncmp(line, field, length) == 0 &&
        std::sscanf(line + length, ": %llu kB", &kilobytes) == 1)
      break;
  }
  std::fclose(file);
  return kilobytes * 1024;
}

// "17 of 40 cached tokens reused: text_differs".
std::string ReuseToText(const TurnStatistics& turn) {
  if (turn.cached_tokens == 0) return "";
  if (turn.reuse_end == ReuseEnd::kAllReused)
    return fmt::format(", {} more reused", turn.reused_tokens);
  return fmt::format(", {} of {} cached ones reused ({})", turn.reused_tokens,
                     turn.cached_tokens, ReuseEndName(turn.reuse_end));
}

}  // namespace

std::string_view ReuseEndName(ReuseEnd end) {
  switch (end) {
    case ReuseEnd::kNothingCached:
      return "nothing_cached";
    case ReuseEnd::kAllReused:
      return "all_reused";
    case ReuseEnd::kTextDiffers:
      return "text_differs";
    case ReuseEnd::kPromptEnds:
      return "prompt_ends";
    case ReuseEnd::kRopeDiffers:
      return "rope_differs";
    case ReuseEnd::kEvicted:
      return "evicted";
  }
  HX_CHECK(false);  // every reason has a name above
}

double PromptTokensPerSecond(const TurnStatistics& turn) {
  return Rate(turn.prompt_tokens, turn.prompt_seconds);
}

double DecodeTokensPerSecond(const TurnStatistics& turn) {
  return Rate(static_cast<double>(turn.new_tokens) - 1, turn.decode_seconds);
}

uint64_t RssBytes() { return ReadProcessStatus("VmRSS"); }

double AcceptedPerStep(const DecodeCounts& counts) {
  return Rate(counts.steps() + counts.accepted, counts.steps());
}

DecodeCounts& DecodeCounts::operator+=(const DecodeCounts& other) {
  plain += other.plain;
  guesses += other.guesses;
  lookahead += other.lookahead;
  accepted += other.accepted;
  return *this;
}

DecodeCounts DecodeCounts::operator-(const DecodeCounts& other) const {
  return {.plain = plain - other.plain,
          .guesses = guesses - other.guesses,
          .lookahead = lookahead - other.lookahead,
          .accepted = accepted - other.accepted};
}

uint64_t PeakRssBytes() {
  if (const uint64_t bytes = ReadProcessStatus("VmHWM"); bytes != 0)
    return bytes;
  struct rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

double CpuSeconds() {
  struct timespec time = {};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

Json StatisticsToJson(const Statistics& statistics) {
  Json json = Json::object();
  json["load_ms"] = kMilli * statistics.load_seconds;
  json["rss_bytes"] = statistics.rss_bytes;
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
  text += ReuseToText(turn) + ".";
  if (turn.new_tokens == 0) return text + " No new token.";
  text += fmt::format(
      " First token after {:.2f} s; {} new tokens, {:.1f} tok/s",
      turn.first_token_seconds, turn.new_tokens, DecodeTokensPerSecond(turn));
  if (turn.steps.accepted > 0)
    text += fmt::format(", {:.2f} a step", AcceptedPerStep(turn.steps));
  return text + ".";
}

}  // namespace hexllm

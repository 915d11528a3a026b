// What a session measured: for `--stats-json`, the text after a run, and
// benchmarks. Not a profiler: nothing here looks inside a step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hexllm {

// Why a prompt kept no more of the KV cache than it did.
enum class ReuseEnd : uint8_t {
  kNothingCached,
  kAllReused,
  kTextDiffers,  // from the first token on that was not reused
  kPromptEnds,   // the prompt is the beginning of what was cached: its last
                 // token is run again, for its logits
  kRopeDiffers,  // longrope: a prompt of this length has other keys
  kEvicted,      // the text differs within what the attention sink dropped
};
// "nothing_cached", "all_reused", "text_differs", "prompt_ends",
// "rope_differs", "evicted".
std::string_view ReuseEndName(ReuseEnd end);

// Steps of a decode loop, by what they ran (runtime/decode_steps.h).
struct DecodeCounts {
  uint32_t plain = 0;      // one token
  uint32_t guesses = 0;    // and guesses of those that follow it
  uint32_t lookahead = 0;  // and the lookahead branch
  uint32_t accepted = 0;   // guesses that came true: tokens without a step

  DecodeCounts& operator+=(const DecodeCounts& other);
  DecodeCounts operator-(const DecodeCounts& other) const;
  uint32_t steps() const { return plain + guesses + lookahead; }
};

// One prompt and its answer. Seconds are wall-clock time.
struct TurnStatistics {
  uint32_t prompt_tokens = 0;  // run through the model
  uint32_t cached_tokens = 0;  // in the KV cache when the turn began
  uint32_t reused_tokens = 0;  // of these, not run again
  ReuseEnd reuse_end = ReuseEnd::kNothingCached;
  uint32_t new_tokens = 0;  // given to the caller (no end token)
  DecodeCounts steps = {};
  uint32_t evictions = 0;     // of the attention sink, in prompt and answer
  double prompt_seconds = 0;  // first to last prompt token
  // From the start of the prompt to the first new token; 0 without one.
  double first_token_seconds = 0;
  double decode_seconds = 0;      // from the first new token to the last
  double decode_cpu_seconds = 0;  // of all threads in that time
  uint64_t rss_bytes = 0;         // of the process at its end
};

struct Statistics {
  double load_seconds = 0;      // Session::Create
  uint64_t rss_bytes = 0;       // of the process, now
  uint64_t peak_rss_bytes = 0;  // and up to now
  std::vector<TurnStatistics> turns = {};
};

// Tokens a second, 0 when nothing was measured. The first new token comes out
// of the prompt's logits, so decoding makes new_tokens - 1.
double PromptTokensPerSecond(const TurnStatistics& turn);
double DecodeTokensPerSecond(const TurnStatistics& turn);
// Tokens that a decode step ran and that stayed, on average: 1 without
// lookahead; 0 without steps.
double AcceptedPerStep(const DecodeCounts& counts);

// Resident set of this process in bytes, and its peak (Linux: VmRSS and VmHWM;
// elsewhere 0 and getrusage).
uint64_t RssBytes();
uint64_t PeakRssBytes();

// Time that this process used on all CPUs.
double CpuSeconds();

// docs/formats.md has the fields.
Json StatisticsToJson(const Statistics& statistics);

// One paragraph for people, about the last turn; no line break at the end.
std::string StatisticsToText(const Statistics& statistics);

}  // namespace hexllm

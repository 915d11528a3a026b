// What a session measured: for `--stats-json`, the text after a run, and
// benchmarks. Not a profiler: nothing here looks inside a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace hexllm {

// One prompt and its answer. Seconds are wall-clock time.
struct TurnStatistics {
  uint32_t prompt_tokens = 0;  // run through the model
  uint32_t reused_tokens = 0;  // found in the KV cache and not run again
  uint32_t new_tokens = 0;     // given to the caller (no end token)
  double prompt_seconds = 0;   // first to last prompt token
  // From the start of the prompt to the first new token; 0 without one.
  double first_token_seconds = 0;
  double decode_seconds = 0;  // from the first new token to the last
};

struct Statistics {
  double load_seconds = 0;      // Session::Create
  uint64_t peak_rss_bytes = 0;  // of the process, up to now
  std::vector<TurnStatistics> turns = {};
};

// Tokens a second, 0 when nothing was measured. The first new token comes out
// of the prompt's logits, so decoding makes new_tokens - 1.
double PromptTokensPerSecond(const TurnStatistics& turn);
double DecodeTokensPerSecond(const TurnStatistics& turn);

// Peak resident set of this process in bytes (Linux: VmHWM, else getrusage).
uint64_t PeakRssBytes();

// {"load_seconds":..,"peak_rss_bytes":..,"turns":[{"prompt_tokens":..,
//  "reused_tokens":..,"new_tokens":..,"prompt_seconds":..,
//  "prompt_tokens_per_second":..,"first_token_seconds":..,
//  "decode_seconds":..,"decode_tokens_per_second":..}]}
Json StatisticsToJson(const Statistics& statistics);

// One paragraph for people, about the last turn; no line break at the end.
std::string StatisticsToText(const Statistics& statistics);

}  // namespace hexllm

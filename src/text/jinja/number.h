// Reads numbers from text as Python's int() and float() do. Used by the filters
// `int` and `float`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hexllm::jinja {

struct ParsedInt {
  enum class State { kNumber, kNoNumber, kTooLarge };
  State state = State::kNoNumber;
  int64_t number = 0;
};

// int(text, base): white space around, a sign, single underscores between
// digits, and a prefix 0x, 0o or 0b that fits the base (0: any). ASCII digits
// only.
ParsedInt ParseInt(std::string_view text, int64_t base);

// float(text): also "inf", "infinity" and "nan" in any case.
std::optional<double> ParseFloat(std::string_view text);

}  // namespace hexllm::jinja

// One formatted value: sign, digits, precision, padding. Shared by the two
// formatting languages (jinja/format.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja/context.h"

namespace hexllm::jinja {

// Python's format specification:
// [[fill]align][sign][#][0][width][grouping][.precision][type]
struct FormatSpec {
  std::string fill = " ";
  char align = 0;   // < > ^ = or 0: the type's own
  char sign = '-';  // - + or space
  bool alternate = false;
  int64_t width = 0;
  char grouping = 0;  // , _ or 0
  int64_t precision = -1;
  char type = 0;
};

// Parses the part of a replacement field behind the colon. kBadInput when
// malformed, kUnsupported for widths and precisions that no template needs.
Result<FormatSpec> ParseFormatSpec(Context& context, std::string_view text);

// format(value, spec).
Result<std::string> FormatWith(Context& context, const Value& value,
                               const FormatSpec& spec);

// The parts of a number before padding: the sign or prefix ("-", "0x"), and the
// digits.
struct FormattedNumber {
  std::string prefix;
  std::string digits;
};
// type: d b o x X, or e E f F g G %, or 0 for the shortest form.
FormattedNumber FormatInteger(int64_t number, const FormatSpec& spec);
FormattedNumber FormatFloating(double number, const FormatSpec& spec);

// Fills `number` up to the width of `spec`; numbers go to the right unless
// `spec` says otherwise.
Result<std::string> PadNumber(Context& context, const FormattedNumber& number,
                              const FormatSpec& spec);
Result<std::string> PadText(Context& context, std::string text,
                            const FormatSpec& spec);

}  // namespace hexllm::jinja

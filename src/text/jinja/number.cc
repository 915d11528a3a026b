#include "text/jinja/number.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

bool IsAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}

// `text` in lower case without its underscores, or nothing when one does not
// stand between two digits.
std::optional<std::string> Digits(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char lower = text[i] >= 'A' && text[i] <= 'Z'
                           ? static_cast<char>(text[i] + 32)
                           : text[i];
    if (lower != '_') {
      out += lower;
    } else if (i == 0 || i + 1 == text.size() ||
               !IsAlnum(out.empty() ? '_' : out.back()) || text[i + 1] == '_') {
      return std::nullopt;
    }
  }
  return out;
}

// The base that a prefix like "0x" names, or 0.
int PrefixBase(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 0;
  return digits[1] == 'x'   ? 16
         : digits[1] == 'o' ? 8
         : digits[1] == 'b' ? 2
                            : 0;
}

}  // namespace

ParsedInt ParseInt(std::string_view text, int64_t base) {
  text = Strip(text, StripEnds::kBoth);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  auto digits = Digits(text);
  if (!digits || (base != 0 && (base < 2 || base > 36))) return {};
  const int prefix = PrefixBase(*digits);
  if (prefix != 0 && (base == 0 || base == prefix)) {
    digits->erase(0, 2);
    base = prefix;
  } else if (base == 0) {
    if (digits->size() > 1 && (*digits)[0] == '0' &&
        digits->find_first_not_of('0') != std::string::npos)
      return {};
    base = 10;
  }
  if (digits->empty()) return {};
  if (negative) digits->insert(0, "-");
  if (!negative && !IsAlnum((*digits)[0])) return {};
  if (negative && !IsAlnum((*digits)[1])) return {};
  ParsedInt parsed;
  const char* end = digits->data() + digits->size();
  const auto [stop, error] = std::from_chars(digits->data(), end, parsed.number,
                                             static_cast<int>(base));
  if (stop != end || error == std::errc::invalid_argument) return {};
  parsed.state = error == std::errc() ? ParsedInt::State::kNumber
                                      : ParsedInt::State::kTooLarge;
  return parsed;
}

std::optional<double> ParseFloat(std::string_view text) {
  text = Strip(text, StripEnds::kBoth);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto digits = Digits(text);
  if (!digits || digits->empty()) return std::nullopt;
  const double sign = negative ? -1.0 : 1.0;
  if (*digits == "inf" || *digits == "infinity")
    return sign * std::numeric_limits<double>::infinity();
  if (*digits == "nan") return std::numeric_limits<double>::quiet_NaN();
  const bool begins_well = (digits->front() >= '0' && digits->front() <= '9') ||
                           digits->front() == '.';
  double number = 0;
  const char* end = digits->data() + digits->size();
  const auto [stop, error] = std::from_chars(digits->data(), end, number);
  if (!begins_well || stop != end || error == std::errc::invalid_argument)
    return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // too large gives inf, too
                                                  // small gives 0
    const bool small = digits->find("e-") != std::string::npos ||
                       digits->front() == '.' || digits->starts_with("0.");
    return sign * (small ? 0.0 : std::numeric_limits<double>::infinity());
  }
  return sign * number;
}

}  // namespace hexllm::jinja

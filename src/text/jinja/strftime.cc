#include "text/jinja/strftime.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace hexllm::jinja {
namespace {

constexpr std::string_view kDays[] = {"Sunday",    "Monday",   "Tuesday",
                                      "Wednesday", "Thursday", "Friday",
                                      "Saturday"};
constexpr std::string_view kMonths[] = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

int TwelveHour(const std::tm& t) {
  return t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
}

// Year and week of ISO 8601.
std::pair<int, int> IsoWeek(const std::tm& t) {
  int year = t.tm_year + 1900;
  const int weekday = (t.tm_wday + 6) % 7;  // Monday is 0
  int week = (t.tm_yday - weekday + 10) / 7;
  const auto weeks_in = [](int y) {
    const auto first_days = [](int n) {
      return (n + n / 4 - n / 100 + n / 400) % 7;
    };
    return first_days(y) == 4 || first_days(y - 1) == 3 ? 53 : 52;
  };
  if (week < 1) return {year - 1, weeks_in(year - 1)};
  if (week > weeks_in(year)) return {year + 1, 1};
  return {year, week};
}

// The number behind a conversion, its width, and the character that fills it.
struct Field {
  int number;
  int width = 2;
  char fill = '0';
};

std::optional<Field> NumberField(char conversion, const std::tm& t) {
  const int year = t.tm_year + 1900;
  switch (conversion) {
    case 'C':
      return Field{year / 100};
    case 'd':
      return Field{t.tm_mday};
    case 'e':
      return Field{t.tm_mday, 2, ' '};
    case 'g':
      return Field{IsoWeek(t).first % 100};
    case 'G':
      return Field{IsoWeek(t).first, 4};
    case 'H':
      return Field{t.tm_hour};
    case 'I':
      return Field{TwelveHour(t)};
    case 'j':
      return Field{t.tm_yday + 1, 3};
    case 'k':
      return Field{t.tm_hour, 2, ' '};
    case 'l':
      return Field{TwelveHour(t), 2, ' '};
    case 'm':
      return Field{t.tm_mon + 1};
    case 'M':
      return Field{t.tm_min};
    case 'S':
      return Field{t.tm_sec};
    case 'u':
      return Field{t.tm_wday == 0 ? 7 : t.tm_wday, 1};
    case 'U':
      return Field{(t.tm_yday + 7 - t.tm_wday) / 7};
    case 'V':
      return Field{IsoWeek(t).second};
    case 'w':
      return Field{t.tm_wday, 1};
    case 'W':
      return Field{(t.tm_yday + 7 - (t.tm_wday + 6) % 7) / 7};
    case 'y':
      return Field{year % 100};
    case 'Y':
      return Field{year, 1};
    default:
      return std::nullopt;
  }
}

std::optional<std::string> TextField(char conversion, const std::tm& t) {
  const std::string_view day = kDays[std::clamp(t.tm_wday, 0, 6)];
  const std::string_view month = kMonths[std::clamp(t.tm_mon, 0, 11)];
  switch (conversion) {
    case 'a':
      return std::string(day.substr(0, 3));
    case 'A':
      return std::string(day);
    case 'b':
    case 'h':
      return std::string(month.substr(0, 3));
    case 'B':
      return std::string(month);
    case 'f':
      return "000000";
    case 'n':
      return "\n";
    case 'p':
      return t.tm_hour < 12 ? "AM" : "PM";
    case 'P':
      return t.tm_hour < 12 ? "am" : "pm";
    case 't':
      return "\t";
    case 'z':
    case 'Z':
      return "";  // a time without zone
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

// Conversions that stand for several others.
std::string_view Expansion(char conversion) {
  switch (conversion) {
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'r':
      return "%I:%M:%S %p";
    case 'R':
      return "%H:%M";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    default:
      return "";
  }
}

}  // namespace

Result<std::string> FormatTime(Context& context, std::string_view format,
                               const std::tm& time) {
  HX_RETURN_IF_ERROR(context.SpendScan(format.size() * 8));
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const char flag =
        format[i + 1] == '-' || format[i + 1] == '0' ? format[++i] : '\0';
    const char conversion = i + 1 < format.size() ? format[++i] : '\0';
    if (const auto field = NumberField(conversion, time)) {
      const std::string digits = std::to_string(field->number);
      const auto missing = static_cast<size_t>(
          std::max(field->width - static_cast<int>(digits.size()), 0));
      if (flag != '-') out.append(missing, flag == '0' ? '0' : field->fill);
      out += digits;
    } else if (const auto text = TextField(conversion, time)) {
      out += *text;
    } else if (const std::string_view expansion = Expansion(conversion);
               !expansion.empty()) {
      HX_ASSIGN_OR_RETURN(const std::string expanded,
                          FormatTime(context, expansion, time));
      out += expanded;
    } else {
      return context.Unsupported(
          fmt::format("strftime_now() with the conversion %{}", conversion));
    }
  }
  return out;
}

}  // namespace hexllm::jinja

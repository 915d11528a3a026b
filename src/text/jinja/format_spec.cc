#include "text/jinja/format_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/print.h"
#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

constexpr int64_t kMaxWidth = 10'000;
constexpr int64_t kMaxPrecision = 500;

bool IsAlign(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Cursor over the text of a specification.
struct Cursor {
  std::string_view text;
  char Peek() const { return text.empty() ? '\0' : text[0]; }
  bool Skip(char c) {
    if (Peek() != c || text.empty()) return false;
    text.remove_prefix(1);
    return true;
  }
  char TakeOneOf(std::string_view set) {
    if (text.empty() || set.find(text[0]) == std::string_view::npos) return 0;
    const char c = text[0];
    text.remove_prefix(1);
    return c;
  }
  // Digits, or -1 when there are none. Large numbers saturate.
  int64_t TakeNumber() {
    if (Peek() < '0' || Peek() > '9') return -1;
    int64_t number = 0;
    while (Peek() >= '0' && Peek() <= '9') {
      number = std::min<int64_t>(number * 10 + (text[0] - '0'), 1'000'000'000);
      text.remove_prefix(1);
    }
    return number;
  }
};

void TakeFillAndAlign(Cursor& cursor, FormatSpec& spec) {
  if (cursor.text.empty()) return;
  size_t fill_end = 0;
  NextCodePoint(cursor.text, fill_end);
  if (fill_end < cursor.text.size() && IsAlign(cursor.text[fill_end])) {
    spec.fill = cursor.text.substr(0, fill_end);
    spec.align = cursor.text[fill_end];
    cursor.text.remove_prefix(fill_end + 1);
    return;
  }
  spec.align = cursor.TakeOneOf("<>^=");
}

// Puts separators between groups of digits of the integer part.
std::string Grouped(const std::string& digits, char separator, size_t group) {
  const size_t whole = std::min(
      digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % group == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string SignText(bool negative, char sign) {
  if (negative) return "-";
  return sign == '-' ? "" : std::string(1, sign);
}

std::string PrintFloat(double magnitude, char type, int64_t precision,
                       bool alternate) {
  const std::string format =
      fmt::format("{{:{}.{}{}}}", alternate ? "#" : "", precision, type);
  return fmt::format(fmt::runtime(format), magnitude);
}

Error NoFormatCode(Context& context, char type, const Value& value) {
  return context.Fail(
      fmt::format("Unknown format code '{}' for object of type '{}'", type,
                  value.TypeName()));
}

}  // namespace

Result<FormatSpec> ParseFormatSpec(Context& context, std::string_view text) {
  FormatSpec spec;
  Cursor cursor{text};
  TakeFillAndAlign(cursor, spec);
  if (const char sign = cursor.TakeOneOf("-+ ")) spec.sign = sign;
  spec.alternate = cursor.Skip('#');
  if (cursor.Peek() == '0') {
    cursor.Skip('0');
    if (spec.align == 0) {
      spec.fill = "0";
      spec.align = '=';
    }
  }
  spec.width = std::max<int64_t>(cursor.TakeNumber(), 0);
  spec.grouping = cursor.TakeOneOf(",_");
  if (cursor.Skip('.')) {
    spec.precision = cursor.TakeNumber();
    if (spec.precision < 0)
      return context.Fail("Format specifier missing precision");
  }
  if (cursor.text.size() > 1)
    return context.Fail(fmt::format("Invalid format specifier '{}'", text));
  spec.type = cursor.Peek();
  if (spec.width > kMaxWidth || spec.precision > kMaxPrecision) {
    return context.Unsupported(
        fmt::format("a format wider than {} or with more than {} digits",
                    kMaxWidth, kMaxPrecision));
  }
  if (spec.grouping != 0 && spec.align == '=')
    return context.Unsupported(
        "a format with both grouping and padding with zeros");
  return spec;
}

FormattedNumber FormatInteger(int64_t number, const FormatSpec& spec) {
  const uint64_t magnitude = number < 0 ? ~static_cast<uint64_t>(number) + 1
                                        : static_cast<uint64_t>(number);
  FormattedNumber out;
  out.prefix = SignText(number < 0, spec.sign);
  switch (spec.type) {
    case 'b':
      out.digits = fmt::format("{:b}", magnitude);
      break;
    case 'o':
      out.digits = fmt::format("{:o}", magnitude);
      break;
    case 'x':
      out.digits = fmt::format("{:x}", magnitude);
      break;
    case 'X':
      out.digits = fmt::format("{:X}", magnitude);
      break;
    default:
      out.digits = fmt::format("{}", magnitude);
  }
  const bool decimal = spec.type == 0 || spec.type == 'd' || spec.type == 'n';
  if (spec.alternate && !decimal) out.prefix += fmt::format("0{}", spec.type);
  if (spec.grouping != 0)
    out.digits = Grouped(out.digits, spec.grouping, decimal ? 3 : 4);
  return out;
}

FormattedNumber FormatFloating(double number, const FormatSpec& spec) {
  FormattedNumber out;
  out.prefix = SignText(std::signbit(number) && !std::isnan(number), spec.sign);
  const double magnitude = std::fabs(spec.type == '%' ? number * 100 : number);
  const char type = spec.type == '%' ? 'f' : spec.type == 'n' ? 'g' : spec.type;
  if (!std::isfinite(magnitude)) {
    out.digits = std::isnan(magnitude) ? "nan" : "inf";
    if (type >= 'A' && type <= 'Z') out.digits = UpperCase(out.digits);
  } else if (type == 0 && spec.precision < 0) {
    out.digits = FloatRepr(magnitude);
  } else if (type == 0) {  // like g, but with a digit behind the point
    out.digits =
        PrintFloat(magnitude, 'g', std::max<int64_t>(spec.precision, 1), false);
    if (out.digits.find_first_of(".e") == std::string::npos) out.digits += ".0";
  } else {
    out.digits =
        PrintFloat(magnitude, type, spec.precision < 0 ? 6 : spec.precision,
                   spec.alternate);
  }
  if (spec.grouping != 0) out.digits = Grouped(out.digits, spec.grouping, 3);
  if (spec.type == '%') out.digits += '%';
  return out;
}

Result<std::string> PadNumber(Context& context, const FormattedNumber& number,
                              const FormatSpec& spec) {
  if (spec.align != '=') {
    FormatSpec right = spec;
    if (right.align == 0) right.align = '>';
    return PadText(context, number.prefix + number.digits, right);
  }
  FormatSpec digits_spec = spec;
  digits_spec.align = '>';
  digits_spec.width = std::max<int64_t>(
      spec.width - static_cast<int64_t>(number.prefix.size()), 0);
  HX_ASSIGN_OR_RETURN(const std::string digits,
                      PadText(context, number.digits, digits_spec));
  return number.prefix + digits;
}

Result<std::string> PadText(Context& context, std::string text,
                            const FormatSpec& spec) {
  const int64_t pad = spec.width - static_cast<int64_t>(CodePointCount(text));
  if (pad <= 0) return text;
  HX_RETURN_IF_ERROR(context.Spend(pad));
  const int64_t left = spec.align == '>'   ? pad
                       : spec.align == '^' ? pad / 2
                                           : 0;
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += spec.fill;
  out += text;
  for (int64_t i = left; i < pad; ++i) out += spec.fill;
  return out;
}

Result<std::string> FormatWith(Context& context, const Value& value,
                               const FormatSpec& spec) {
  constexpr std::string_view kIntegerTypes = "dbonxX";
  constexpr std::string_view kFloatTypes = "eEfFgG%n";
  const bool has_type = spec.type != 0;
  if (value.As<bool>() != nullptr && !has_type && spec.width == 0)
    return ToText(context, value);
  if (const auto number = value.AsInt();
      number &&
      (!has_type || kIntegerTypes.find(spec.type) != std::string_view::npos)) {
    if (spec.precision >= 0)
      return context.Fail("Precision not allowed in integer format specifier");
    return PadNumber(context, FormatInteger(*number, spec), spec);
  }
  if (const auto number = value.AsFloat()) {
    if (has_type && kFloatTypes.find(spec.type) == std::string_view::npos)
      return NoFormatCode(context, spec.type, value);
    return PadNumber(context, FormatFloating(*number, spec), spec);
  }
  if (!value.IsString())
    return context.Fail(fmt::format(
        "unsupported format string passed to {}.__format__", value.TypeName()));
  if (has_type && spec.type != 's')
    return NoFormatCode(context, spec.type, value);
  if (spec.align == '=' && spec.fill != "0")
    return context.Fail("'=' alignment not allowed in string format specifier");
  HX_RETURN_IF_ERROR(context.SpendScan(value.text().size()));
  std::string text = value.text();
  if (spec.precision >= 0)
    text.resize(CodePointOffset(text, static_cast<size_t>(spec.precision)));
  return PadText(context, std::move(text), spec);
}

}  // namespace hexllm::jinja

#include "text/jinja/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

// Appends repr() of values to a text.
class Printer {
 public:
  explicit Printer(Context& context) : context_(context) {}

  Status Print(const Value& value) {
    HX_RETURN_IF_ERROR(context_.Enter());
    const DepthGuard guard(context_);
    HX_RETURN_IF_ERROR(context_.Spend(1));
    HX_RETURN_IF_ERROR(PrintOne(value));
    const size_t limit = context_.limits().max_output_bytes;
    if (out_.size() > limit)
      return context_.Fail(
          fmt::format("a text is longer than {} bytes", limit));
    return OkStatus();
  }

  std::string Take() { return std::move(out_); }

 private:
  Status PrintOne(const Value& value) {
    if (value.IsNone()) return Append("None");
    if (const auto* truth = value.As<bool>())
      return Append(*truth ? "True" : "False");
    if (const auto* number = value.As<int64_t>())
      return Append(std::to_string(*number));
    if (const auto* number = value.As<double>())
      return Append(FloatRepr(*number));
    if (value.IsUndefined()) return Append("Undefined");
    if (value.IsString()) return PrintString(value);
    if (value.sequence() != nullptr) return PrintSequence(*value.sequence());
    if (value.dict() != nullptr) return PrintDict(*value.dict());
    if (const auto* range = value.As<Value::RangePtr>())
      return PrintRange(**range);
    if (const auto* view = value.As<Value::ViewPtr>()) return PrintView(**view);
    if (value.object() != nullptr) return PrintObject(*value.object());
    return context_.Unsupported(
        fmt::format("printing a {}, whose text would be a memory address; did "
                    "you forget '| list' or '()'?",
                    value.TypeName()));
  }

  Status Append(std::string_view text) {
    out_ += text;
    return OkStatus();
  }

  Status PrintString(const Value& value) {
    const bool markup = value.TypeName() == "Markup";
    HX_RETURN_IF_ERROR(context_.SpendScan(value.text().size() * 4));
    out_ += markup ? "Markup(" : "";
    out_ += QuoteString(value.text());
    out_ += markup ? ")" : "";
    return OkStatus();
  }

  Status PrintSequence(const Sequence& sequence) {
    out_ += sequence.tuple ? '(' : '[';
    for (size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) out_ += ", ";
      HX_RETURN_IF_ERROR(Print(sequence.items[i]));
    }
    if (sequence.tuple && sequence.items.size() == 1) out_ += ',';
    out_ += sequence.tuple ? ')' : ']';
    return OkStatus();
  }

  Status PrintDict(const Dict& dict) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, value] : dict.entries()) {
      if (!first) out_ += ", ";
      first = false;
      HX_RETURN_IF_ERROR(Print(key));
      out_ += ": ";
      HX_RETURN_IF_ERROR(Print(value));
    }
    out_ += '}';
    return OkStatus();
  }

  Status PrintRange(const Range& range) {
    out_ += fmt::format("range({}, {}", range.start, range.stop);
    out_ += range.step == 1 ? ")" : fmt::format(", {})", range.step);
    return OkStatus();
  }

  Status PrintView(const DictView& view) {
    out_ += view.what == DictView::What::kKeys     ? "dict_keys(["
            : view.what == DictView::What::kValues ? "dict_values(["
                                                   : "dict_items([";
    bool first = true;
    for (const auto& [key, value] : view.dict->entries()) {
      if (!first) out_ += ", ";
      first = false;
      if (view.what == DictView::What::kItems) out_ += '(';
      if (view.what != DictView::What::kValues) HX_RETURN_IF_ERROR(Print(key));
      if (view.what == DictView::What::kItems) out_ += ", ";
      if (view.what != DictView::What::kKeys) HX_RETURN_IF_ERROR(Print(value));
      if (view.what == DictView::What::kItems) out_ += ')';
    }
    out_ += "])";
    return OkStatus();
  }

  Status PrintObject(Object& object) {
    const auto* space = dynamic_cast<const Namespace*>(&object);
    if (space == nullptr)
      return context_.Unsupported(
          fmt::format("printing a {}", object.TypeName()));
    out_ += "<Namespace {";
    bool first = true;
    for (const auto& [name, value] : space->attributes()) {
      if (!first) out_ += ", ";
      first = false;
      out_ += QuoteString(name) + ": ";
      HX_RETURN_IF_ERROR(Print(value));
    }
    out_ += "}>";
    return OkStatus();
  }

  Context& context_;
  std::string out_;
};

// Appends the escape of a character that repr() does not show.
void AppendReprEscape(uint32_t c, std::string& out) {
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c <= 0xFF) {
    out += fmt::format("\\x{:02x}", c);
  } else {
    out +=
        c <= 0xFFFF ? fmt::format("\\u{:04x}", c) : fmt::format("\\U{:08x}", c);
  }
}

}  // namespace

std::string FloatRepr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number,
                                 std::chars_format::scientific)
                       .ptr;
  std::string_view scientific(buffer, static_cast<size_t>(end - buffer));
  const size_t e = scientific.find('e');
  int exponent = 0;
  const char* exponent_begin =
      scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_begin, end, exponent);
  std::string digits(scientific.substr(0, e));
  const std::string sign = digits[0] == '-' ? "-" : "";
  std::erase_if(digits, [](char c) { return c == '-' || c == '.'; });
  if (exponent < -4 || exponent >= 16) {
    const std::string fraction =
        digits.size() > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{}{:02}", sign, digits[0], fraction,
                       exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') +
           digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const std::string fraction =
      digits.size() > whole ? digits.substr(whole) : "0";
  return sign + digits.substr(0, whole) + "." + fraction;
}

std::string QuoteString(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote =
      has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t pos = 0; pos < text.size();) {
    const size_t begin = pos;
    const uint32_t c = NextCodePoint(text, pos);
    if (c == '\\' || c == static_cast<unsigned char>(quote)) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (IsPrintable(c)) {
      out += text.substr(begin, pos - begin);
    } else {
      AppendReprEscape(c, out);
    }
  }
  out += quote;
  return out;
}

Result<std::string> Repr(Context& context, const Value& value) {
  Printer printer(context);
  HX_RETURN_IF_ERROR(printer.Print(value));
  return printer.Take();
}

Result<std::string> ToText(Context& context, const Value& value) {
  if (value.IsUndefined()) return std::string();
  if (!value.IsString()) return Repr(context, value);
  HX_RETURN_IF_ERROR(context.SpendBytes(value.text().size()));
  HX_RETURN_IF_ERROR(context.SpendScan(value.text().size()));
  return value.text();
}

}  // namespace hexllm::jinja

#include "text/jinja/format.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/format_spec.h"
#include "text/jinja/markup.h"
#include "text/jinja/ops.h"
#include "text/jinja/print.h"
#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

// repr() with all non-ASCII characters escaped.
Result<std::string> AsciiRepr(Context& context, const Value& value) {
  HX_ASSIGN_OR_RETURN(const std::string text, Repr(context, value));
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const uint32_t c = NextCodePoint(text, pos);
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      out += c <= 0xFF     ? fmt::format("\\x{:02x}", c)
             : c <= 0xFFFF ? fmt::format("\\u{:04x}", c)
                           : fmt::format("\\U{:08x}", c);
    }
  }
  return out;
}

// s, r, a: how a value becomes text.
Result<std::string> Convert(Context& context, const Value& value,
                            char conversion) {
  if (conversion == 'r') return Repr(context, value);
  if (conversion == 'a') return AsciiRepr(context, value);
  return ToText(context, value);
}

// "..." % values
class PercentFormatter {
 public:
  PercentFormatter(Context& context, const Value& format, const Value& values)
      : context_(context),
        markup_(IsMarkup(format)),
        rest_(format.text()),
        values_(values) {
    if (values.sequence() != nullptr && values.sequence()->tuple)
      tuple_ = values.sequence();
  }

  Result<std::string> Run() {
    HX_RETURN_IF_ERROR(context_.SpendScan(rest_.size()));
    std::string out;
    while (true) {
      const size_t percent = rest_.find('%');
      out += rest_.substr(0, percent);
      if (percent == std::string_view::npos) break;
      rest_.remove_prefix(percent + 1);
      HX_ASSIGN_OR_RETURN(const std::string piece, Directive());
      HX_RETURN_IF_ERROR(context_.SpendBytes(piece.size()));
      out += piece;
    }
    const size_t available = tuple_ != nullptr           ? tuple_->items.size()
                             : values_.dict() != nullptr ? 0
                                                         : 1;
    if (next_ < available)
      return context_.Fail(
          "not all arguments converted during string formatting");
    return out;
  }

 private:
  Result<Value> NextValue() {
    if (tuple_ == nullptr && next_ == 0) {
      ++next_;
      return values_;
    }
    if (tuple_ == nullptr || next_ >= tuple_->items.size())
      return context_.Fail("not enough arguments for format string");
    return tuple_->items[next_++];
  }

  char Peek() const { return rest_.empty() ? '\0' : rest_[0]; }

  char Take() {
    const char c = Peek();
    if (!rest_.empty()) rest_.remove_prefix(1);
    return c;
  }

  // "(name)" in front of a directive: the value with that key.
  Result<std::optional<Value>> NamedValue() {
    if (Peek() != '(') return std::optional<Value>();
    const size_t close = rest_.find(')');
    if (close == std::string_view::npos)
      return context_.Fail("incomplete format key");
    if (values_.dict() == nullptr)
      return context_.Fail("format requires a mapping");
    const std::string key(rest_.substr(1, close - 1));
    rest_.remove_prefix(close + 1);
    const Value* value = values_.dict()->Find(key);
    if (value == nullptr)
      return context_.Fail(fmt::format("format key '{}' is missing", key));
    next_ = 1;
    return std::optional<Value>(*value);
  }

  Result<int64_t> Number() {
    if (Peek() == '*')
      return context_.Unsupported("'*' as a width in a % format");
    int64_t number = 0;
    while (Peek() >= '0' && Peek() <= '9')
      number = std::min<int64_t>(number * 10 + (Take() - '0'), 1'000'000);
    if (number > 10'000)
      return context_.Unsupported("a % format wider than 10000");
    return number;
  }

  Status ReadFlags(FormatSpec& spec) {
    bool left = false;
    bool zero = false;
    for (bool more = true; more;) {
      switch (Peek()) {
        case '-':
          left = true;
          break;
        case '+':
          spec.sign = '+';
          break;
        case ' ':
          if (spec.sign != '+') spec.sign = ' ';
          break;
        case '#':
          spec.alternate = true;
          break;
        case '0':
          zero = true;
          break;
        default:
          more = false;
      }
      if (more) Take();
    }
    spec.align = left ? '<' : zero ? '=' : '>';
    HX_ASSIGN_OR_RETURN(spec.width, Number());
    if (Peek() == '.') {
      Take();
      HX_ASSIGN_OR_RETURN(spec.precision, Number());
      if (spec.precision > 500)
        return context_.Unsupported("a % format with more than 500 digits");
    }
    while (Peek() == 'l' || Peek() == 'h' || Peek() == 'L') Take();
    return OkStatus();
  }

  Result<std::string> Directive() {
    HX_ASSIGN_OR_RETURN(std::optional<Value> value, NamedValue());
    FormatSpec spec;
    HX_RETURN_IF_ERROR(ReadFlags(spec));
    if (rest_.empty()) return context_.Fail("incomplete format");
    spec.type = Take();
    if (spec.type == '%') return std::string("%");
    if (!value) {
      HX_ASSIGN_OR_RETURN(value, NextValue());
    }
    if (std::string_view("sra").find(spec.type) != std::string_view::npos)
      return TextDirective(*value, spec);
    if (spec.type == 'c') return CharacterDirective(*value, spec);
    return NumberDirective(*value, spec);
  }

  Result<std::string> TextDirective(const Value& value, FormatSpec spec) {
    HX_ASSIGN_OR_RETURN(std::string text, Convert(context_, value, spec.type));
    if (markup_ && !IsMarkup(value)) text = EscapeHtml(text);
    if (spec.precision >= 0)
      text.resize(CodePointOffset(text, static_cast<size_t>(spec.precision)));
    if (spec.align == '=') spec.align = '>';
    return PadText(context_, std::move(text), spec);
  }

  Result<std::string> CharacterDirective(const Value& value, FormatSpec spec) {
    if (spec.align == '=') spec.align = '>';
    if (!value.IsString()) return context_.Unsupported("%c of a number");
    if (CodePointCount(value.text()) != 1)
      return context_.Fail("%c requires int or char");
    return PadText(context_, value.text(), spec);
  }

  Result<std::string> NumberDirective(const Value& value, FormatSpec spec) {
    if (spec.align == '=') spec.fill = "0";
    if (const auto* undefined = value.As<Undefined>())
      return context_.Fail(*undefined->why);
    if (std::string_view("eEfFgG").find(spec.type) != std::string_view::npos) {
      const auto number = value.AsFloat();
      if (!number)
        return context_.Fail(
            fmt::format("must be real number, not {}", value.TypeName()));
      return PadNumber(context_, FormatFloating(*number, spec), spec);
    }
    if (std::string_view("diuoxX").find(spec.type) == std::string_view::npos) {
      return context_.Fail(
          fmt::format("unsupported format character '{}'", spec.type));
    }
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    auto number = value.AsInt();
    if (!number && value.As<double>() != nullptr && spec.type == 'd' &&
        std::abs(*value.As<double>()) < 0x1p62) {
      number = static_cast<int64_t>(*value.As<double>());
    }
    if (!number)
      return context_.Fail(
          fmt::format("%{} format: a number is required, not {}", spec.type,
                      value.TypeName()));
    FormattedNumber formatted = FormatInteger(*number, spec);
    if (static_cast<int64_t>(formatted.digits.size()) < spec.precision) {
      formatted.digits.insert(
          0, static_cast<size_t>(spec.precision) - formatted.digits.size(),
          '0');
    }
    return PadNumber(context_, formatted, spec);
  }

  Context& context_;
  const bool markup_;
  std::string_view rest_;
  const Value& values_;
  const Sequence* tuple_ = nullptr;
  size_t next_ = 0;
};

// "...".format(...)
class BraceFormatter {
 public:
  BraceFormatter(Context& context, const CallArgs& args)
      : context_(context), args_(args) {}

  // `depth` is 1 inside of a specification, where fields may stand once more.
  Result<std::string> Run(std::string_view text, int depth) {
    HX_RETURN_IF_ERROR(context_.SpendScan(text.size()));
    std::string out;
    for (size_t pos = 0; pos < text.size();) {
      const char c = text[pos++];
      if (c != '{' && c != '}') {
        out += c;
        continue;
      }
      if (pos < text.size() && text[pos] == c && depth == 0) {
        out += c;
        ++pos;
        continue;
      }
      if (c == '}')
        return context_.Fail("Single '}' encountered in format string");
      HX_ASSIGN_OR_RETURN(const size_t end, FieldEnd(text, pos));
      if (depth > 1) return context_.Fail("Max string recursion exceeded");
      HX_ASSIGN_OR_RETURN(const std::string piece,
                          Field(text.substr(pos, end - pos), depth));
      HX_RETURN_IF_ERROR(context_.SpendBytes(piece.size()));
      out += piece;
      pos = end + 1;
    }
    return out;
  }

 private:
  Result<size_t> FieldEnd(std::string_view text, size_t pos) {
    int open = 1;
    for (; pos < text.size(); ++pos) {
      if (text[pos] == '{') ++open;
      if (text[pos] == '}' && --open == 0) return pos;
    }
    return context_.Fail("expected '}' before end of string");
  }

  // name[!conversion][:spec]
  Result<std::string> Field(std::string_view field, int depth) {
    const size_t name_end = std::min(field.find_first_of("!:"), field.size());
    HX_ASSIGN_OR_RETURN(Value value, Lookup(field.substr(0, name_end)));
    field.remove_prefix(name_end);
    if (field.starts_with('!')) {
      if (field.size() < 2 ||
          std::string_view("sra").find(field[1]) == std::string_view::npos) {
        return context_.Fail("unknown conversion in a replacement field");
      }
      HX_ASSIGN_OR_RETURN(std::string text, Convert(context_, value, field[1]));
      value = Value::Text(std::move(text));
      field.remove_prefix(2);
    }
    if (field.empty()) return ToText(context_, value);
    if (field[0] != ':')
      return context_.Fail("expected ':' after conversion specifier");
    HX_ASSIGN_OR_RETURN(const std::string spec_text,
                        Run(field.substr(1), depth + 1));
    if (spec_text.empty()) return ToText(context_, value);
    HX_ASSIGN_OR_RETURN(const FormatSpec spec,
                        ParseFormatSpec(context_, spec_text));
    return FormatWith(context_, value, spec);
  }

  // The argument that a field names, with the attributes and items behind it.
  Result<Value> Lookup(std::string_view name) {
    const size_t first_end = std::min(name.find_first_of(".["), name.size());
    HX_ASSIGN_OR_RETURN(Value value, Argument(name.substr(0, first_end)));
    name.remove_prefix(first_end);
    while (!name.empty()) {
      if (name[0] == '.') {
        const size_t end = std::min(name.find_first_of(".[", 1), name.size());
        if (end == 1) return context_.Fail("Empty attribute in format string");
        HX_ASSIGN_OR_RETURN(
            value, GetAttribute(context_, value, name.substr(1, end - 1)));
        name.remove_prefix(end);
        continue;
      }
      const size_t close = name.find(']');
      if (name[0] != '[' || close == std::string_view::npos || close == 1)
        return context_.Fail("malformed item in format string");
      const auto key = ParseIndex(name.substr(1, close - 1));
      HX_ASSIGN_OR_RETURN(
          value,
          GetItem(context_, value,
                  key ? Value::Int(*key)
                      : Value::Text(std::string(name.substr(1, close - 1)))));
      name.remove_prefix(close + 1);
    }
    return value;
  }

  static std::optional<int64_t> ParseIndex(std::string_view digits) {
    if (digits.empty() || digits.size() > 9 ||
        digits.find_first_not_of("0123456789") != std::string_view::npos)
      return std::nullopt;
    return std::stoll(std::string(digits));
  }

  Result<Value> Argument(std::string_view name) {
    auto index = ParseIndex(name);
    if (name.empty()) index = next_++;
    if (index) {
      if (*index < static_cast<int64_t>(args_.positional.size()))
        return args_.positional[static_cast<size_t>(*index)];
      return context_.Fail(fmt::format(
          "Replacement index {} out of range for positional args tuple",
          *index));
    }
    for (const auto& [key, value] : args_.named) {
      if (key == name) return value;
    }
    return context_.Fail(
        fmt::format("format() misses the argument '{}'", name));
  }

  Context& context_;
  const CallArgs& args_;
  int64_t next_ = 0;
};

}  // namespace

Result<Value> FormatPercent(Context& context, const Value& format,
                            const Value& values) {
  PercentFormatter formatter(context, format, values);
  HX_ASSIGN_OR_RETURN(std::string text, formatter.Run());
  return context.NewString(std::move(text), IsMarkup(format));
}

Result<Value> FormatBraces(Context& context, std::string_view format,
                           const CallArgs& args) {
  BraceFormatter formatter(context, args);
  HX_ASSIGN_OR_RETURN(std::string text, formatter.Run(format, 0));
  return context.NewString(std::move(text));
}

}  // namespace hexllm::jinja

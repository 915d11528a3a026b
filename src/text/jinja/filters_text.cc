// Filters on text. (See jinja/filters.h.)
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/args.h"
#include "text/jinja/filters.h"
#include "text/jinja/format.h"
#include "text/jinja/markup.h"
#include "text/jinja/methods.h"
#include "text/jinja/ops.h"
#include "text/jinja/print.h"
#include "text/jinja/table.h"
#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

constexpr int64_t kMaxIndent = 256;

// soft_str: a string as it is, anything else as its text.
Result<Value> SoftString(Context& context, const Value& value) {
  if (value.IsString()) return value;
  HX_ASSIGN_OR_RETURN(std::string text, ToText(context, value));
  return context.NewString(std::move(text));
}

// Calls the string method `name` on the text of `self`.
Result<Value> ByMethod(Context& context, const Value& self,
                       const CallArgs& args, std::string_view name) {
  HX_ASSIGN_OR_RETURN(const Value text, SoftString(context, self));
  HX_ASSIGN_OR_RETURN(const auto method, FindMethod(context, text, name));
  return Call(context, *method, args);
}

Result<Value> Upper(Context& context, const Value& self, const CallArgs& args) {
  return ByMethod(context, self, args, "upper");
}
Result<Value> Lower(Context& context, const Value& self, const CallArgs& args) {
  return ByMethod(context, self, args, "lower");
}
Result<Value> CapitalizeFilter(Context& context, const Value& self,
                               const CallArgs& args) {
  return ByMethod(context, self, args, "capitalize");
}

Result<Value> Trim(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"trim", {"chars"}, 0}));
  CallArgs strip;
  if (bound.Has(0)) strip.positional.push_back(bound[0]);
  return ByMethod(context, self, strip, "strip");
}

Result<Value> Center(Context& context, const Value& self,
                     const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"center", {"width"}, 0}));
  CallArgs center;
  center.positional.push_back(bound.Has(0) ? bound[0] : Value::Int(80));
  return ByMethod(context, self, center, "center");
}

// Starts a word: what the filter `title` capitalizes stands behind one of
// these.
bool IsWordStart(uint32_t c) {
  return IsSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

Result<Value> Title(Context& context, const Value& self, const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"title", {}, 0}).status());
  HX_ASSIGN_OR_RETURN(const Value value, SoftString(context, self));
  const std::string& text = value.text();
  HX_RETURN_IF_ERROR(context.SpendScan(text.size() * 4));
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    size_t begin = pos;
    const bool separator = IsWordStart(NextCodePoint(text, pos));
    const size_t first_end = pos;
    for (size_t next = pos; pos < text.size(); pos = next) {
      if (IsWordStart(NextCodePoint(text, next)) != separator) break;
    }
    out += UpperCase(std::string_view(text).substr(begin, first_end - begin));
    out += LowerCase(std::string_view(text).substr(first_end, pos - first_end));
  }
  return context.NewString(std::move(out));
}

Result<Value> Replace(Context& context, const Value& self,
                      const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"replace", {"old", "new", "count"}, 2}));
  HX_ASSIGN_OR_RETURN(std::string text, ToText(context, self));
  HX_ASSIGN_OR_RETURN(std::string old_text, ToText(context, bound[0]));
  HX_ASSIGN_OR_RETURN(std::string new_text, ToText(context, bound[1]));
  CallArgs call;
  call.positional = {Value::Text(std::move(old_text)),
                     Value::Text(std::move(new_text))};
  if (!bound[2].IsNone()) call.positional.push_back(bound[2]);
  return ByMethod(context, Value::Text(std::move(text)), call, "replace");
}

Result<Value> StringFilter(Context& context, const Value& self,
                           const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"string", {}, 0}).status());
  return SoftString(context, self);
}

Result<Value> Safe(Context& context, const Value& self, const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"safe", {}, 0}).status());
  HX_ASSIGN_OR_RETURN(std::string text, ToText(context, self));
  return context.NewString(std::move(text), true);
}

Result<Value> ForceEscape(Context& context, const Value& self,
                          const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"escape", {}, 0}).status());
  HX_ASSIGN_OR_RETURN(const std::string text, ToText(context, self));
  return context.NewString(EscapeHtml(text), true);
}

Result<Value> Escape(Context& context, const Value& self,
                     const CallArgs& args) {
  if (IsMarkup(self)) return self;
  return ForceEscape(context, self, args);
}

Result<Value> Format(Context& context, const Value& self,
                     const CallArgs& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    return context.Fail(
        "format() cannot handle positional and keyword arguments at the same "
        "time");
  }
  HX_ASSIGN_OR_RETURN(const Value text, SoftString(context, self));
  std::vector<Dict::Entry> entries;
  for (const auto& [name, value] : args.named)
    entries.push_back({Value::Text(name), value});
  HX_ASSIGN_OR_RETURN(const Value values,
                      entries.empty() ? context.NewTuple(args.positional)
                                      : context.NewDict(std::move(entries)));
  return FormatPercent(context, text, values);
}

// An indent given as a number of spaces or as text.
Result<std::string> IndentText(Context& context, const Value& width) {
  if (width.IsString()) return width.text();
  const auto count = width.AsInt();
  if (!count)
    return context.Fail(
        fmt::format("an indent must be int or str, not {}", width.TypeName()));
  if (*count > kMaxIndent)
    return context.Unsupported(
        fmt::format("an indent of more than {} spaces", kMaxIndent));
  return std::string(static_cast<size_t>(std::max<int64_t>(*count, 0)), ' ');
}

// Lines of `text` without their breaks, as str.splitlines gives them.
std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t length = LineBreakLength(text, pos);
    if (length == 0) {
      NextCodePoint(text, pos);
      continue;
    }
    lines.push_back(text.substr(begin, pos - begin));
    pos += length;
    begin = pos;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

Result<Value> Indent(Context& context, const Value& self,
                     const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"indent", {"width", "first", "blank"}, 0}));
  if (const auto* undefined = self.As<Undefined>())
    return context.Fail(*undefined->why);
  if (!self.IsString())
    return context.Fail(
        fmt::format("indent() needs a str, not {}", self.TypeName()));
  HX_ASSIGN_OR_RETURN(
      const std::string indent,
      IndentText(context, bound.Has(0) ? bound[0] : Value::Int(4)));
  const bool blank = bound.Truthy(2, false);
  HX_RETURN_IF_ERROR(context.SpendScan(self.text().size() * 8));
  const std::string text = self.text() + "\n";
  std::string out = bound.Truthy(1, false) ? indent : "";
  const std::vector<std::string_view> lines = SplitLines(text);
  HX_RETURN_IF_ERROR(context.SpendBytes(
      lines.size() * (sizeof(lines[0]) + indent.size()) + text.size()));
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (blank || !lines[i].empty())) out += indent;
    out += lines[i];
  }
  return context.NewString(std::move(out), IsMarkup(self));
}

Result<Value> Truncate(Context& context, const Value& self,
                       const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args,
           {"truncate", {"length", "killwords", "end", "leeway"}, 0}));
  if (!self.IsString())
    return context.Fail(
        fmt::format("truncate() needs a str, not {}", self.TypeName()));
  HX_ASSIGN_OR_RETURN(const int64_t length, bound.Int(context, 0, 255));
  HX_ASSIGN_OR_RETURN(const std::string end, bound.Str(context, 2, "..."));
  HX_ASSIGN_OR_RETURN(const int64_t leeway, bound[3].IsNone()
                                                ? Result<int64_t>(5)
                                                : bound.Int(context, 3, 5));
  const auto end_length = static_cast<int64_t>(CodePointCount(end));
  if (length < end_length)
    return context.Fail(fmt::format("truncate() expected length >= {}, got {}",
                                    end_length, length));
  if (leeway < 0)
    return context.Fail(
        fmt::format("truncate() expected leeway >= 0, got {}", leeway));
  HX_RETURN_IF_ERROR(context.SpendScan(self.text().size() * 4));
  const auto size = static_cast<int64_t>(CodePointCount(self.text()));
  if (size - length <= leeway) return self;
  std::string cut = self.text().substr(
      0,
      CodePointOffset(self.text(), static_cast<size_t>(length - end_length)));
  const size_t space =
      bound.Truthy(1, false) ? std::string::npos : cut.rfind(' ');
  return context.NewString(cut.substr(0, space) + end);
}

Result<Value> WordCount(Context& context, const Value& self,
                        const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"wordcount", {}, 0}).status());
  HX_ASSIGN_OR_RETURN(const std::string text, ToText(context, self));
  int64_t words = 0;
  bool inside = false;
  for (size_t pos = 0; pos < text.size();) {
    const uint32_t c = NextCodePoint(text, pos);
    const bool word = c == '_' || IsAlnum(c);
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value::Int(words);
}

// json.dumps' separators: a pair (item separator, key separator).
Status ReadSeparators(Context& context, const Value& separators,
                      JsonStyle& style) {
  if (separators.IsNone()) {
    if (style.indent) style.item_separator = ",";
    return OkStatus();
  }
  const Sequence* pair = separators.sequence();
  if (pair == nullptr || pair->items.size() != 2 ||
      !pair->items[0].IsString() || !pair->items[1].IsString()) {
    return context.Fail("tojson() separators must be a pair of str");
  }
  style.item_separator = pair->items[0].text();
  style.key_separator = pair->items[1].text();
  return OkStatus();
}

Result<Value> ToJsonFilter(Context& context, const Value& self,
                           const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args,
           {"tojson",
            {"ensure_ascii", "indent", "separators", "sort_keys"},
            0}));
  JsonStyle style;
  style.ensure_ascii = bound.Truthy(0, false);
  if (!bound[1].IsNone()) {
    HX_ASSIGN_OR_RETURN(style.indent, IndentText(context, bound[1]));
    if (style.indent->size() > kMaxIndent)
      return context.Unsupported(
          fmt::format("an indent of more than {} bytes", kMaxIndent));
  }
  HX_RETURN_IF_ERROR(ReadSeparators(context, bound[2], style));
  style.sort_keys = bound.Truthy(3, false);
  HX_ASSIGN_OR_RETURN(std::string json, ToJson(context, self, style));
  return context.NewString(std::move(json));
}

constexpr FilterRow kRows[] = {
    {"capitalize", &CapitalizeFilter},
    {"center", &Center},
    {"e", &Escape},
    {"escape", &Escape},
    {"forceescape", &ForceEscape},
    {"format", &Format},
    {"indent", &Indent},
    {"lower", &Lower},
    {"replace", &Replace},
    {"safe", &Safe},
    {"title", &Title},
    {"tojson", &ToJsonFilter},
    {"string", &StringFilter},
    {"trim", &Trim},
    {"upper", &Upper},
    {"truncate", &Truncate},
    {"wordcount", &WordCount},
};

}  // namespace

NativeFunction FindTextFilter(std::string_view name) {
  return FindFunction(kRows, name);
}

}  // namespace hexllm::jinja

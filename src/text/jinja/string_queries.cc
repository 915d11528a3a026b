// Methods of str that search in it or ask about it. (See jinja/methods.h.)
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "text/jinja/args.h"
#include "text/jinja/methods.h"
#include "text/jinja/ops.h"
#include "text/jinja/table.h"
#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

// The part of a string that a search looks at.
struct Window {
  std::string_view text;
  size_t offset = 0;  // in code points
  bool valid =
      true;  // false: start lies behind the end, where even "" is not found
};

Result<Window> ReadWindow(Context& context, const Value& self,
                          const BoundArgs& bound) {
  const std::string_view text = self.text();
  HX_RETURN_IF_ERROR(context.SpendScan(text.size()));
  if (bound[1].IsNone() && bound[2].IsNone()) return Window{text, 0, true};
  const auto length = static_cast<int64_t>(CodePointCount(text));
  HX_ASSIGN_OR_RETURN(int64_t start, bound[1].IsNone()
                                         ? Result<int64_t>(0)
                                         : bound.Int(context, 1, 0));
  HX_ASSIGN_OR_RETURN(int64_t stop, bound[2].IsNone()
                                        ? Result<int64_t>(length)
                                        : bound.Int(context, 2, length));
  if (start < 0) start = std::max<int64_t>(start + length, 0);
  if (stop < 0) stop = std::max<int64_t>(stop + length, 0);
  stop = std::min(stop, length);
  if (start > stop) return Window{"", 0, false};
  const size_t begin = CodePointOffset(text, static_cast<size_t>(start));
  const size_t end = CodePointOffset(text, static_cast<size_t>(stop));
  return Window{text.substr(begin, end - begin), static_cast<size_t>(start),
                true};
}

enum class Search { kFirst, kLast };

// The position in code points, or -1.
Result<int64_t> FindIn(Context& context, const Value& self,
                       const CallArgs& args, Search search) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"find", {"sub", "start", "end"}, 1}));
  HX_ASSIGN_OR_RETURN(const std::string needle, bound.Str(context, 0, ""));
  HX_ASSIGN_OR_RETURN(const Window window, ReadWindow(context, self, bound));
  HX_RETURN_IF_ERROR(
      context.SpendScan(window.text.size() * (1 + needle.size() / 64)));
  if (!window.valid) return -1;
  const size_t at = search == Search::kFirst ? window.text.find(needle)
                                             : window.text.rfind(needle);
  if (at == std::string_view::npos) return -1;
  return static_cast<int64_t>(window.offset +
                              CodePointCount(window.text.substr(0, at)));
}

template <Search kSearch>
Result<Value> Find(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const int64_t at, FindIn(context, self, args, kSearch));
  return Value(at);
}

template <Search kSearch>
Result<Value> Index(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const int64_t at, FindIn(context, self, args, kSearch));
  if (at < 0) return context.Fail("substring not found");
  return Value(at);
}

Result<Value> Count(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"count", {"sub", "start", "end"}, 1}));
  HX_ASSIGN_OR_RETURN(const std::string needle, bound.Str(context, 0, ""));
  HX_ASSIGN_OR_RETURN(const Window window, ReadWindow(context, self, bound));
  HX_RETURN_IF_ERROR(
      context.SpendScan(window.text.size() * (1 + needle.size() / 64)));
  if (!window.valid) return Value::Int(0);
  if (needle.empty())
    return Value::Int(static_cast<int64_t>(CodePointCount(window.text)) + 1);
  int64_t count = 0;
  for (size_t at = window.text.find(needle); at != std::string_view::npos;
       at = window.text.find(needle, at + needle.size()))
    ++count;
  return Value::Int(count);
}

enum class Affix { kPrefix, kSuffix };

template <Affix kAffix>
Result<Value> HasAffix(Context& context, const Value& self,
                       const CallArgs& args) {
  constexpr std::string_view kName =
      kAffix == Affix::kPrefix ? "startswith" : "endswith";
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {kName, {"affix", "start", "end"}, 1}));
  HX_ASSIGN_OR_RETURN(const Window window, ReadWindow(context, self, bound));
  std::vector<Value> affixes = {bound[0]};
  if (bound[0].sequence() != nullptr && bound[0].sequence()->tuple)
    affixes = bound[0].sequence()->items;
  for (const Value& affix : affixes) {
    if (const auto* undefined = affix.As<Undefined>())
      return context.Fail(fmt::format("{}() got an undefined value: {}", kName,
                                      *undefined->why));
    if (!affix.IsString())
      return context.Fail(
          fmt::format("{}() needs a str or a tuple of str, not {}", kName,
                      affix.TypeName()));
    const bool found = kAffix == Affix::kPrefix
                           ? window.text.starts_with(affix.text())
                           : window.text.ends_with(affix.text());
    if (found && window.valid) return Value::Bool(true);
  }
  return Value::Bool(false);
}

// True for a string with at least one character, all of which satisfy the
// predicate.
template <bool (*kPredicate)(uint32_t)>
Result<Value> AllChars(Context& context, const Value& self,
                       const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"str method", {}, 0}).status());
  HX_RETURN_IF_ERROR(context.SpendScan(self.text().size() * 4));
  const std::string_view text = self.text();
  for (size_t pos = 0; pos < text.size();) {
    if (!kPredicate(NextCodePoint(text, pos))) return Value::Bool(false);
  }
  return Value::Bool(!text.empty());
}

template <bool (*kPredicate)(std::string_view)>
Result<Value> WholeText(Context& context, const Value& self,
                        const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"str method", {}, 0}).status());
  HX_RETURN_IF_ERROR(context.SpendScan(self.text().size() * 4));
  return Value::Bool(kPredicate(self.text()));
}

bool IsAsciiText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x80;
  });
}

bool IsPrintableText(std::string_view text) {
  for (size_t pos = 0; pos < text.size();) {
    if (!IsPrintable(NextCodePoint(text, pos))) return false;
  }
  return true;
}

bool IsIdentifier(std::string_view text) {
  bool first = true;
  for (size_t pos = 0; pos < text.size(); first = false) {
    const uint32_t c = NextCodePoint(text, pos);
    if (c != '_' && !IsAlpha(c) && (first || !IsDecimal(c))) return false;
  }
  return !text.empty();
}

constexpr MethodRow kRows[] = {
    {"count", &Count},
    {"endswith", &HasAffix<Affix::kSuffix>},
    {"find", &Find<Search::kFirst>},
    {"index", &Index<Search::kFirst>},
    {"isalnum", &AllChars<IsAlnum>},
    {"isalpha", &AllChars<IsAlpha>},
    {"isascii", &WholeText<IsAsciiText>},
    {"isdecimal", &AllChars<IsDecimal>},
    {"isdigit", &AllChars<IsDigit>},
    {"isidentifier", &WholeText<IsIdentifier>},
    {"islower", &WholeText<IsAllLower>},
    {"isnumeric", &AllChars<IsNumericChar>},
    {"isprintable", &WholeText<IsPrintableText>},
    {"isspace", &AllChars<IsSpace>},
    {"isupper", &WholeText<IsAllUpper>},
    {"rfind", &Find<Search::kLast>},
    {"rindex", &Index<Search::kLast>},
    {"startswith", &HasAffix<Affix::kPrefix>},
};

}  // namespace

const MethodRow* FindStringQuery(std::string_view name) {
  return FindRow(kRows, name);
}

}  // namespace hexllm::jinja

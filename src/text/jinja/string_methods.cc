// Methods of str that transform, split or join. (See jinja/methods.h.)
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "text/jinja/args.h"
#include "text/jinja/format.h"
#include "text/jinja/markup.h"
#include "text/jinja/methods.h"
#include "text/jinja/ops.h"
#include "text/jinja/print.h"
#include "text/jinja/table.h"
#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

// A string that comes out of a method of `self`: markup stays markup.
Result<Value> Like(Context& context, const Value& self, std::string text) {
  return context.NewString(std::move(text), IsMarkup(self));
}

// An argument of a method of `self` that becomes part of the result: plain text
// is escaped when `self` is markup.
std::string Joined(const Value& self, const Value& argument) {
  return IsMarkup(self) && !IsMarkup(argument) ? EscapeHtml(argument.text())
                                               : argument.text();
}

template <std::string (*kTransform)(std::string_view)>
Result<Value> Transform(Context& context, const Value& self,
                        const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"str method", {}, 0}).status());
  HX_RETURN_IF_ERROR(context.SpendScan(self.text().size() * 8));
  return Like(context, self, kTransform(self.text()));
}

template <StripEnds kEnds>
Result<Value> StripMethod(Context& context, const Value& self,
                          const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"strip", {"chars"}, 0}));
  if (bound[0].IsNone()) {
    HX_RETURN_IF_ERROR(context.SpendScan(self.text().size()));
    return Like(context, self, std::string(Strip(self.text(), kEnds)));
  }
  HX_ASSIGN_OR_RETURN(const std::string chars, bound.Str(context, 0, ""));
  HX_RETURN_IF_ERROR(
      context.SpendScan(self.text().size() * (1 + chars.size() / 8)));
  return Like(context, self, std::string(Strip(self.text(), kEnds, chars)));
}

// The pieces of one split, from the left or the right.
struct Splitter {
  std::string_view text;
  int64_t max_splits = -1;  // negative: no limit
  std::vector<std::string_view> pieces;

  bool MaySplit() const {
    return max_splits < 0 || static_cast<int64_t>(pieces.size()) < max_splits;
  }

  void SplitLeft(std::string_view separator) {
    size_t end = text.find(separator);
    while (MaySplit() && end != std::string_view::npos) {
      pieces.push_back(text.substr(0, end));
      text.remove_prefix(end + separator.size());
      end = text.find(separator);
    }
    pieces.push_back(text);
  }

  void SplitRight(std::string_view separator) {
    size_t begin = text.rfind(separator);
    while (MaySplit() && begin != std::string_view::npos) {
      pieces.push_back(text.substr(begin + separator.size()));
      text = text.substr(0, begin);
      begin = text.rfind(separator);
    }
    pieces.push_back(text);
    std::reverse(pieces.begin(), pieces.end());
  }

  void SplitLeftAtSpace() {
    text = Strip(text, StripEnds::kLeft);
    while (!text.empty()) {
      size_t end = 0;
      for (size_t next = 0;
           end < text.size() && !IsSpace(NextCodePoint(text, next));
           end = next) {
      }
      if (!MaySplit()) end = text.size();
      pieces.push_back(text.substr(0, end));
      text = Strip(text.substr(end), StripEnds::kLeft);
    }
  }

  // With a limit the rest keeps its inner white space.
  void SplitRightAtSpace() {
    const std::vector<size_t> offsets = CodePointOffsets(text);
    const auto is_space = [&](size_t index) {
      size_t pos = offsets[index];
      return IsSpace(NextCodePoint(text, pos));
    };
    size_t end = offsets.size() - 1;
    while (true) {
      while (end > 0 && is_space(end - 1)) --end;
      if (end == 0) break;
      size_t begin = MaySplit() ? end : 0;
      while (begin > 0 && !is_space(begin - 1)) --begin;
      pieces.push_back(
          text.substr(offsets[begin], offsets[end] - offsets[begin]));
      end = begin;
    }
    std::reverse(pieces.begin(), pieces.end());
  }
};

Result<Value> ListOf(Context& context, const Value& self,
                     const std::vector<std::string_view>& pieces) {
  HX_RETURN_IF_ERROR(context.Spend(static_cast<int64_t>(pieces.size())));
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const std::string_view piece : pieces) {
    HX_ASSIGN_OR_RETURN(Value item, Like(context, self, std::string(piece)));
    items.push_back(std::move(item));
  }
  return context.NewList(std::move(items));
}

enum class Side { kLeft, kRight };

template <Side kSide>
Result<Value> Split(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"split", {"sep", "maxsplit"}, 0}));
  Splitter splitter{self.text(), -1, {}};
  HX_ASSIGN_OR_RETURN(splitter.max_splits, bound.Int(context, 1, -1));
  HX_RETURN_IF_ERROR(context.SpendScan(self.text().size() * 4));
  if (bound[0].IsNone()) {
    HX_RETURN_IF_ERROR(context.SpendBytes(self.text().size() * sizeof(size_t)));
    kSide == Side::kLeft ? splitter.SplitLeftAtSpace()
                         : splitter.SplitRightAtSpace();
    return ListOf(context, self, splitter.pieces);
  }
  HX_ASSIGN_OR_RETURN(const std::string separator, bound.Str(context, 0, ""));
  if (separator.empty()) return context.Fail("empty separator");
  HX_RETURN_IF_ERROR(
      context.SpendScan(self.text().size() * (1 + separator.size() / 64)));
  kSide == Side::kLeft ? splitter.SplitLeft(separator)
                       : splitter.SplitRight(separator);
  return ListOf(context, self, splitter.pieces);
}

Result<Value> SplitLinesMethod(Context& context, const Value& self,
                               const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"splitlines", {"keepends"}, 0}));
  const bool keep = bound.Truthy(0, false);
  const std::string_view text = self.text();
  HX_RETURN_IF_ERROR(context.SpendScan(text.size() * 8));
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t length = LineBreakLength(text, pos);
    if (length == 0) {
      NextCodePoint(text, pos);
      continue;
    }
    lines.push_back(text.substr(begin, pos - begin + (keep ? length : 0)));
    pos += length;
    begin = pos;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return ListOf(context, self, lines);
}

template <Side kSide>
Result<Value> Partition(Context& context, const Value& self,
                        const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"partition", {"sep"}, 1}));
  HX_ASSIGN_OR_RETURN(const std::string separator, bound.Str(context, 0, ""));
  if (separator.empty()) return context.Fail("empty separator");
  const std::string_view text = self.text();
  HX_RETURN_IF_ERROR(
      context.SpendScan(text.size() * (1 + separator.size() / 64)));
  const size_t at =
      kSide == Side::kLeft ? text.find(separator) : text.rfind(separator);
  std::string_view parts[3] = {text, "", ""};
  if (at != std::string_view::npos) {
    parts[0] = text.substr(0, at);
    parts[1] = separator;
    parts[2] = text.substr(at + separator.size());
  } else if (kSide == Side::kRight) {
    std::swap(parts[0], parts[2]);
  }
  std::vector<Value> items;
  for (const std::string_view part : parts) {
    HX_ASSIGN_OR_RETURN(Value item, Like(context, self, std::string(part)));
    items.push_back(std::move(item));
  }
  return context.NewTuple(std::move(items));
}

// Copies `text` with up to `count` places of `old_text` (all when negative)
// replaced.
Result<std::string> Replaced(Context& context, std::string_view text,
                             const std::pair<std::string, std::string>& change,
                             int64_t count) {
  const auto& [old_text, new_text] = change;
  std::string out;
  size_t pos = 0;
  for (; count != 0; --count) {
    size_t at = text.find(old_text, pos);
    if (at == std::string_view::npos) break;
    HX_RETURN_IF_ERROR(context.SpendBytes(new_text.size()));
    HX_RETURN_IF_ERROR(context.SpendScan(new_text.size()));
    out += text.substr(pos, at - pos);
    out += new_text;
    pos = at + old_text.size();
    if (!old_text.empty()) continue;
    if (pos >= text.size()) return out;
    size_t next =
        pos;  // an empty text is found before every character and at the end
    NextCodePoint(text, next);
    out += text.substr(pos, next - pos);
    pos = next;
  }
  out += text.substr(pos);
  return out;
}

Result<Value> ReplaceMethod(Context& context, const Value& self,
                            const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"replace", {"old", "new", "count"}, 2}));
  HX_ASSIGN_OR_RETURN(const std::string old_text, bound.Str(context, 0, ""));
  HX_RETURN_IF_ERROR(bound.Str(context, 1, "").status());
  HX_ASSIGN_OR_RETURN(const int64_t count, bound.Int(context, 2, -1));
  HX_RETURN_IF_ERROR(
      context.SpendScan(self.text().size() * (1 + old_text.size() / 64)));
  HX_ASSIGN_OR_RETURN(std::string out,
                      Replaced(context, self.text(),
                               {old_text, Joined(self, bound[1])}, count));
  return Like(context, self, std::move(out));
}

Result<Value> JoinMethod(Context& context, const Value& self,
                         const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"join", {"iterable"}, 1}));
  HX_ASSIGN_OR_RETURN(const std::vector<Value> items,
                      ToVector(context, bound[0]));
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].IsString()) {
      return context.Fail(
          fmt::format("sequence item {}: expected str instance, {} found", i,
                      items[i].TypeName()));
    }
    HX_RETURN_IF_ERROR(
        context.SpendBytes(self.text().size() + items[i].text().size()));
    HX_RETURN_IF_ERROR(
        context.SpendScan(self.text().size() + items[i].text().size()));
    if (i > 0) out += self.text();
    out += Joined(self, items[i]);
  }
  return Like(context, self, std::move(out));
}

template <Side kSide>
Result<Value> RemoveAffix(Context& context, const Value& self,
                          const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"removeprefix", {"affix"}, 1}));
  HX_ASSIGN_OR_RETURN(const std::string affix, bound.Str(context, 0, ""));
  std::string_view text = self.text();
  if (kSide == Side::kLeft && text.starts_with(affix))
    text.remove_prefix(affix.size());
  if (kSide == Side::kRight && text.ends_with(affix))
    text.remove_suffix(affix.size());
  return Like(context, self, std::string(text));
}

// Fills `self` up to `width` code points with `fill`, `left` of it on the left.
Result<Value> Pad(Context& context, const Value& self, const BoundArgs& bound,
                  int64_t (*left_of)(int64_t pad, int64_t width)) {
  HX_ASSIGN_OR_RETURN(const int64_t width, bound.Int(context, 0, 0));
  HX_ASSIGN_OR_RETURN(const std::string fill, bound.Str(context, 1, " "));
  if (CodePointCount(fill) != 1)
    return context.Fail(
        "The fill character must be exactly one character long");
  const int64_t pad = width - static_cast<int64_t>(CodePointCount(self.text()));
  if (pad <= 0) return self;
  HX_RETURN_IF_ERROR(context.SpendBytes(static_cast<size_t>(pad)));
  HX_RETURN_IF_ERROR(context.Spend(pad));
  const int64_t left = left_of(pad, width);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += self.text();
  for (int64_t i = left; i < pad; ++i) out += fill;
  return Like(context, self, std::move(out));
}

Result<Value> Center(Context& context, const Value& self,
                     const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"center", {"width", "fillchar"}, 1}));
  return Pad(context, self, bound, [](int64_t pad, int64_t width) {
    return pad / 2 + (pad & width & 1);
  });
}

Result<Value> LeftJustify(Context& context, const Value& self,
                          const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"ljust", {"width", "fillchar"}, 1}));
  return Pad(context, self, bound, [](int64_t, int64_t) { return int64_t{0}; });
}

Result<Value> RightJustify(Context& context, const Value& self,
                           const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"rjust", {"width", "fillchar"}, 1}));
  return Pad(context, self, bound, [](int64_t pad, int64_t) { return pad; });
}

Result<Value> ZeroFill(Context& context, const Value& self,
                       const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(BoundArgs bound,
                      Bind(context, args, {"zfill", {"width", ""}, 1}));
  bound.Set(1, Value::Text("0"));
  const std::string& text = self.text();
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  if (!has_sign)
    return Pad(context, self, bound, [](int64_t pad, int64_t) { return pad; });
  HX_ASSIGN_OR_RETURN(const int64_t width, bound.Int(context, 0, 0));
  bound.Set(0, Value::Int(std::max<int64_t>(width, 1) - 1));
  HX_ASSIGN_OR_RETURN(const Value rest,
                      Pad(context, Value::Text(text.substr(1)), bound,
                          [](int64_t pad, int64_t) { return pad; }));
  return Like(context, self, text[0] + rest.text());
}

Result<Value> Format(Context& context, const Value& self,
                     const CallArgs& args) {
  return FormatBraces(context, self.text(), args);
}

constexpr MethodRow kRows[] = {
    {"capitalize", &Transform<Capitalize>},
    {"center", &Center},
    {"format", &Format},
    {"join", &JoinMethod},
    {"ljust", &LeftJustify},
    {"lower", &Transform<LowerCase>},
    {"lstrip", &StripMethod<StripEnds::kLeft>},
    {"partition", &Partition<Side::kLeft>},
    {"removeprefix", &RemoveAffix<Side::kLeft>},
    {"removesuffix", &RemoveAffix<Side::kRight>},
    {"replace", &ReplaceMethod},
    {"rjust", &RightJustify},
    {"rpartition", &Partition<Side::kRight>},
    {"rsplit", &Split<Side::kRight>},
    {"rstrip", &StripMethod<StripEnds::kRight>},
    {"split", &Split<Side::kLeft>},
    {"splitlines", &SplitLinesMethod},
    {"strip", &StripMethod<StripEnds::kBoth>},
    {"swapcase", &Transform<SwapCase>},
    {"title", &Transform<TitleCase>},
    {"upper", &Transform<UpperCase>},
    {"zfill", &ZeroFill},
};

}  // namespace

const MethodRow* FindStringMethod(std::string_view name) {
  return FindRow(kRows, name);
}

}  // namespace hexllm::jinja

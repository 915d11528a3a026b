// Filters on sequences and dicts as a whole. (See jinja/filters.h.)
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "text/jinja/args.h"
#include "text/jinja/filters.h"
#include "text/jinja/iterate.h"
#include "text/jinja/methods.h"
#include "text/jinja/ops.h"
#include "text/jinja/print.h"
#include "text/jinja/sort.h"
#include "text/jinja/table.h"
#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

Result<Value> LengthFilter(Context& context, const Value& self,
                           const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"length", {}, 0}).status());
  HX_ASSIGN_OR_RETURN(const int64_t length, Length(context, self));
  return Value(length);
}

Result<Value> Default(Context& context, const Value& self,
                      const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"default", {"default_value", "boolean"}, 0}));
  if (!self.IsUndefined() && !(bound.Truthy(1, false) && !self.Truthy()))
    return self;
  return bound.Has(0) ? bound[0] : Value::Text("");
}

Result<Value> First(Context& context, const Value& self, const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"first", {}, 0}).status());
  HX_ASSIGN_OR_RETURN(const auto iterator, Iterate(context, self));
  HX_ASSIGN_OR_RETURN(auto item, iterator->Next(context));
  return item ? std::move(*item)
              : Value::Missing("No first item, sequence was empty.");
}

Result<Value> Last(Context& context, const Value& self, const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"last", {}, 0}).status());
  if (self.As<Value::IteratorPtr>() != nullptr || !IsIterable(self)) {
    return context.Fail(
        fmt::format("'{}' object is not reversible", self.TypeName()));
  }
  HX_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(context, self));
  return items.empty() ? Value::Missing("No last item, sequence was empty.")
                       : std::move(items.back());
}

Result<Value> ListFilter(Context& context, const Value& self,
                         const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"list", {}, 0}).status());
  HX_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(context, self));
  return context.NewList(std::move(items));
}

Result<Value> Join(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"join", {"d", "attribute"}, 0}));
  HX_ASSIGN_OR_RETURN(const std::string separator,
                      bound.Has(0) ? ToText(context, bound[0])
                                   : Result<std::string>(std::string()));
  HX_ASSIGN_OR_RETURN(const auto iterator, Iterate(context, self));
  std::string text;
  for (bool first = true;; first = false) {
    HX_ASSIGN_OR_RETURN(const auto item, iterator->Next(context));
    if (!item) return context.NewString(std::move(text));
    HX_ASSIGN_OR_RETURN(const Value value, GetByPath(context, *item, bound[1]));
    HX_ASSIGN_OR_RETURN(const std::string piece, ToText(context, value));
    HX_RETURN_IF_ERROR(context.SpendBytes(separator.size()));
    if (!first) text += separator;
    text += piece;
  }
}

Result<Value> Items(Context& context, const Value& self, const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"items", {}, 0}).status());
  if (self.IsUndefined()) return context.NewIterator(IterateVector({}));
  const auto* dict = self.As<Value::DictPtr>();
  if (dict == nullptr)
    return context.Fail("Can only get item pairs from a mapping.");
  HX_ASSIGN_OR_RETURN(
      auto iterator,
      Iterate(context, Value(std::make_shared<const DictView>(
                           DictView{DictView::What::kItems, *dict}))));
  return context.NewIterator(std::move(iterator));
}

Result<Value> Reverse(Context& context, const Value& self,
                      const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"reverse", {}, 0}).status());
  if (self.IsString())
    return GetSlice(context, self, {Value(), Value(), Value::Int(-1)});
  if (!IsIterable(self)) return context.Fail("argument must be iterable");
  HX_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(context, self));
  std::reverse(items.begin(), items.end());
  if (self.As<Value::IteratorPtr>() != nullptr)
    return context.NewList(std::move(items));
  return context.NewIterator(IterateVector(std::move(items)));
}

Result<Value> SortFilter(Context& context, const Value& self,
                         const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args,
           {"sort", {"reverse", "case_sensitive", "attribute"}, 0}));
  HX_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(context, self));
  const SortOrder order{bound.Truthy(0, false), bound.Truthy(1, false)};
  HX_RETURN_IF_ERROR(SortByAttributes(context, items, bound[2], order));
  return context.NewList(std::move(items));
}

Result<Value> DictSort(Context& context, const Value& self,
                       const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args,
           {"dictsort", {"case_sensitive", "by", "reverse"}, 0}));
  HX_ASSIGN_OR_RETURN(const std::string by, bound.Str(context, 1, "key"));
  if (by != "key" && by != "value")
    return context.Fail("You can only sort by either \"key\" or \"value\"");
  const auto* dict = self.As<Value::DictPtr>();
  if (dict == nullptr)
    return context.Fail(
        fmt::format("dictsort needs a dict, not {}", self.TypeName()));
  const Value view(std::make_shared<const DictView>(
      DictView{DictView::What::kItems, *dict}));
  HX_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(context, view));
  const SortOrder order{bound.Truthy(2, false), bound.Truthy(0, false)};
  HX_RETURN_IF_ERROR(
      SortByAttributes(context, items, Value::Int(by == "key" ? 0 : 1), order));
  return context.NewList(std::move(items));
}

// The smallest (or, with `greatest`, the largest) item by its attribute.
Result<Value> Extreme(Context& context, const Value& self,
                      const BoundArgs& bound, bool greatest) {
  HX_ASSIGN_OR_RETURN(const auto iterator, Iterate(context, self));
  std::optional<Value> best;
  Value best_key;
  while (true) {
    HX_ASSIGN_OR_RETURN(const auto item, iterator->Next(context));
    if (!item) break;
    HX_ASSIGN_OR_RETURN(Value key, GetByPath(context, *item, bound[1]));
    if (!bound.Truthy(0, false)) {
      HX_ASSIGN_OR_RETURN(key, IgnoreCase(context, key));
    }
    bool better = !best.has_value();
    if (!better) {
      HX_ASSIGN_OR_RETURN(better, greatest ? Less(context, best_key, key)
                                           : Less(context, key, best_key));
    }
    if (!better) continue;
    best = *item;
    best_key = std::move(key);
  }
  return best ? *best
              : Value::Missing("No aggregated item, sequence was empty.");
}

Result<Value> Min(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"min", {"case_sensitive", "attribute"}, 0}));
  return Extreme(context, self, bound, false);
}

Result<Value> Max(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"max", {"case_sensitive", "attribute"}, 0}));
  return Extreme(context, self, bound, true);
}

struct KeyOrder {
  bool operator()(const Value& a, const Value& b) const {
    return KeyLess(a, b);
  }
};

Result<Value> Unique(Context& context, const Value& self,
                     const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"unique", {"case_sensitive", "attribute"}, 0}));
  HX_ASSIGN_OR_RETURN(auto source, Iterate(context, self));
  const bool ignore_case = !bound.Truthy(0, false);
  const auto keep =
      [ignore_case, path = bound[1], seen = std::set<Value, KeyOrder>()](
          Context& c,
          const Value& item) mutable -> Result<std::optional<Value>> {
    HX_ASSIGN_OR_RETURN(Value key, GetByPath(c, item, path));
    if (ignore_case) {
      HX_ASSIGN_OR_RETURN(key, IgnoreCase(c, key));
    }
    if (!Dict::IsKey(key))
      return c.Fail(fmt::format("unhashable type: '{}'", key.TypeName()));
    if (key.IsString()) HX_RETURN_IF_ERROR(c.SpendScan(key.text().size() * 16));
    return seen.insert(std::move(key)).second ? std::optional<Value>(item)
                                              : std::nullopt;
  };
  return context.NewIterator(MakeFiltered(std::move(source), keep));
}

Result<Value> Batch(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"batch", {"linecount", "fill_with"}, 1}));
  HX_ASSIGN_OR_RETURN(const int64_t count, bound.Int(context, 0, 0));
  HX_ASSIGN_OR_RETURN(const std::vector<Value> items, ToVector(context, self));
  const auto size =
      static_cast<size_t>(std::clamp<int64_t>(count, 1, INT64_MAX));
  std::vector<Value> rows;
  for (size_t begin = 0; begin < items.size();
       begin += std::min(size, items.size() - begin)) {
    const size_t end = begin + std::min(size, items.size() - begin);
    std::vector<Value> row(items.begin() + static_cast<ptrdiff_t>(begin),
                           items.begin() + static_cast<ptrdiff_t>(end));
    if (!bound[1].IsNone() && row.size() < size) {
      HX_RETURN_IF_ERROR(context.Spend(count));
      row.resize(size, bound[1]);
    }
    HX_ASSIGN_OR_RETURN(Value list, context.NewList(std::move(row)));
    rows.push_back(std::move(list));
  }
  return context.NewIterator(IterateVector(std::move(rows)));
}

Result<Value> SliceFilter(Context& context, const Value& self,
                          const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"slice", {"slices", "fill_with"}, 1}));
  HX_ASSIGN_OR_RETURN(const int64_t slices, bound.Int(context, 0, 0));
  HX_ASSIGN_OR_RETURN(const std::vector<Value> items, ToVector(context, self));
  if (slices == 0) return context.Fail("integer division or modulo by zero");
  HX_RETURN_IF_ERROR(context.Spend(std::max<int64_t>(slices, 0)));
  const auto length = static_cast<int64_t>(items.size());
  std::vector<Value> out;
  auto begin = items.begin();
  for (int64_t i = 0; i < slices; ++i) {
    const bool is_longer = i < length % slices;
    const auto end = begin + length / slices + (is_longer ? 1 : 0);
    std::vector<Value> part(begin, end);
    if (!bound[1].IsNone() && !is_longer) part.push_back(bound[1]);
    begin = end;
    HX_ASSIGN_OR_RETURN(Value list, context.NewList(std::move(part)));
    out.push_back(std::move(list));
  }
  return context.NewIterator(IterateVector(std::move(out)));
}

// Attributes only, never items.
Result<Value> Attr(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"attr", {"name"}, 1}));
  HX_ASSIGN_OR_RETURN(const std::string name, bound.Str(context, 0, ""));
  if (const auto* undefined = self.As<Undefined>())
    return context.Fail(*undefined->why);
  if (self.dict() == nullptr) return GetAttribute(context, self, name);
  HX_ASSIGN_OR_RETURN(auto method, FindMethod(context, self, name));
  return method ? std::move(*method)
                : Value::Missing(
                      fmt::format("'dict object' has no attribute '{}'", name));
}

constexpr FilterRow kRows[] = {
    {"attr", &Attr},
    {"batch", &Batch},
    {"count", &LengthFilter},
    {"d", &Default},
    {"default", &Default},
    {"first", &First},
    {"dictsort", &DictSort},
    {"items", &Items},
    {"join", &Join},
    {"last", &Last},
    {"length", &LengthFilter},
    {"list", &ListFilter},
    {"max", &Max},
    {"min", &Min},
    {"reverse", &Reverse},
    {"slice", &SliceFilter},
    {"sort", &SortFilter},
    {"unique", &Unique},
};

}  // namespace

NativeFunction FindSequenceFilter(std::string_view name) {
  return FindFunction(kRows, name);
}

}  // namespace hexllm::jinja

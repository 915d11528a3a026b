// Equality, order and membership of template values. (See jinja/ops.h.)
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/ops.h"

namespace hexllm::jinja {
namespace {

Result<bool> EqualItems(Context& context, const std::vector<Value>& a,
                        const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    HX_ASSIGN_OR_RETURN(const bool same, Equal(context, a[i], b[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> EqualDicts(Context& context, const Dict& a, const Dict& b) {
  if (a.entries().size() != b.entries().size()) return false;
  for (const auto& [key, value] : a.entries()) {
    if (key.IsString())
      HX_RETURN_IF_ERROR(context.SpendScan(key.text().size() * 8));
    const Value* other = b.Find(key);
    if (other == nullptr) return false;
    HX_ASSIGN_OR_RETURN(const bool same, Equal(context, value, *other));
    if (!same) return false;
  }
  return true;
}

bool EqualNumbers(const Value& a, const Value& b) {
  const auto x = a.AsInt();
  const auto y = b.AsInt();
  return x && y ? *x == *y : *a.AsFloat() == *b.AsFloat();
}

bool EqualRanges(const Range& a, const Range& b) {
  if (a.length != b.length) return false;
  if (a.length == 0) return true;
  return a.start == b.start && (a.length == 1 || a.step == b.step);
}

// Values that are equal only when they are the same.
bool SameObject(const Value& a, const Value& b) {
  if (const auto* p = a.As<Object*>())
    return b.As<Object*>() != nullptr && *p == *b.As<Object*>();
  if (const auto* p = a.As<Value::IteratorPtr>())
    return b.As<Value::IteratorPtr>() != nullptr &&
           *p == *b.As<Value::IteratorPtr>();
  if (const auto* p = a.As<Value::CallablePtr>()) {
    const auto* q = b.As<Value::CallablePtr>();
    return q != nullptr && (*p)->function == (*q)->function &&
           (*p)->name == (*q)->name && (*p)->self.IsNone() &&
           (*q)->self.IsNone();
  }
  return false;
}

Result<bool> LessSequences(Context& context, const Sequence& a,
                           const Sequence& b) {
  const size_t common = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < common; ++i) {
    HX_ASSIGN_OR_RETURN(const bool same,
                        Equal(context, a.items[i], b.items[i]));
    if (!same) return Less(context, a.items[i], b.items[i]);
  }
  return a.items.size() < b.items.size();
}

Result<bool> ContainsItem(Context& context, const Value& container,
                          const Value& item) {
  HX_ASSIGN_OR_RETURN(const auto iterator, Iterate(context, container));
  while (true) {
    HX_ASSIGN_OR_RETURN(const auto next, iterator->Next(context));
    if (!next) return false;
    HX_ASSIGN_OR_RETURN(const bool same, Equal(context, *next, item));
    if (same) return true;
  }
}

Result<bool> ContainsKey(Context& context, const Dict& dict, const Value& key) {
  if (key.IsString())
    HX_RETURN_IF_ERROR(context.SpendScan(key.text().size() * 8));
  if (Dict::IsKey(key)) return dict.Find(key) != nullptr;
  if (key.dict() != nullptr ||
      (key.sequence() != nullptr && !key.sequence()->tuple)) {
    return context.Fail(fmt::format("unhashable type: '{}'", key.TypeName()));
  }
  return false;
}

}  // namespace

Result<bool> Equal(Context& context, const Value& a, const Value& b) {
  HX_RETURN_IF_ERROR(context.Spend(1));
  if (a.IsString() && b.IsString()) {
    HX_RETURN_IF_ERROR(
        context.SpendScan(std::min(a.text().size(), b.text().size())));
    return a.text() == b.text();
  }
  if (a.IsNumber() && b.IsNumber()) return EqualNumbers(a, b);
  if (a.IsNone() || a.IsUndefined())
    return (a.IsNone() && b.IsNone()) || (a.IsUndefined() && b.IsUndefined());
  if (a.sequence() != nullptr && b.sequence() != nullptr) {
    if (a.sequence()->tuple != b.sequence()->tuple) return false;
    return EqualItems(context, a.sequence()->items, b.sequence()->items);
  }
  if (a.dict() != nullptr && b.dict() != nullptr)
    return EqualDicts(context, *a.dict(), *b.dict());
  const auto* x = a.As<Value::RangePtr>();
  const auto* y = b.As<Value::RangePtr>();
  if (x != nullptr && y != nullptr) return EqualRanges(**x, **y);
  return SameObject(a, b);
}

Result<bool> Less(Context& context, const Value& a, const Value& b) {
  HX_RETURN_IF_ERROR(context.Spend(1));
  if (a.IsNumber() && b.IsNumber()) {
    const auto x = a.AsInt();
    const auto y = b.AsInt();
    return x && y ? *x < *y : *a.AsFloat() < *b.AsFloat();
  }
  if (a.IsString() && b.IsString()) {
    HX_RETURN_IF_ERROR(
        context.SpendScan(std::min(a.text().size(), b.text().size())));
    return a.text() <
           b.text();  // the order of UTF-8 bytes is the order of code points
  }
  if (a.sequence() != nullptr && b.sequence() != nullptr &&
      a.sequence()->tuple == b.sequence()->tuple) {
    return LessSequences(context, *a.sequence(), *b.sequence());
  }
  for (const Value* operand : {&a, &b}) {
    if (const auto* undefined = operand->As<Undefined>())
      return context.Fail(*undefined->why);
  }
  return context.Fail(fmt::format("'{}' and '{}' cannot be ordered",
                                  a.TypeName(), b.TypeName()));
}

Result<bool> Contains(Context& context, const Value& container,
                      const Value& item) {
  HX_RETURN_IF_ERROR(context.Spend(1));
  if (container.IsString()) {
    if (item.IsUndefined()) return context.Fail(*item.As<Undefined>()->why);
    if (!item.IsString())
      return context.Fail(
          fmt::format("'in <string>' requires string as left operand, not {}",
                      item.TypeName()));
    HX_RETURN_IF_ERROR(context.SpendScan(container.text().size() *
                                         (1 + item.text().size() / 64)));
    return container.text().find(item.text()) != std::string::npos;
  }
  if (container.dict() != nullptr)
    return ContainsKey(context, *container.dict(), item);
  if (const auto* view = container.As<Value::ViewPtr>();
      view != nullptr && (*view)->what == DictView::What::kKeys) {
    return ContainsKey(context, *(*view)->dict, item);
  }
  if (!IsIterable(container))
    return context.Fail(fmt::format("argument of type '{}' is not iterable",
                                    container.TypeName()));
  return ContainsItem(context, container, item);
}

Result<bool> Compare(Context& context, CompareOp op, const Value& a,
                     const Value& b) {
  const auto negated = [](Result<bool> result) -> Result<bool> {
    if (!result.ok()) return result;
    return !*result;
  };
  switch (op) {
    case CompareOp::kEqual:
      return Equal(context, a, b);
    case CompareOp::kNotEqual:
      return negated(Equal(context, a, b));
    case CompareOp::kLess:
      return Less(context, a, b);
    case CompareOp::kGreater:
      return Less(context, b, a);
    case CompareOp::kLessEqual:
    case CompareOp::kGreaterEqual: {
      HX_ASSIGN_OR_RETURN(const bool less, op == CompareOp::kLessEqual
                                               ? Less(context, a, b)
                                               : Less(context, b, a));
      if (less) return true;
      return Equal(context, a, b);
    }
    case CompareOp::kIn:
      return Contains(context, b, a);
    case CompareOp::kNotIn:
      return negated(Contains(context, b, a));
  }
  return false;
}

}  // namespace hexllm::jinja

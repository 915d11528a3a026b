// Attributes, items, slices, length, iteration and calls of template values.
// (See jinja/ops.h.)
#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "text/jinja/iterate.h"
#include "text/jinja/methods.h"
#include "text/jinja/ops.h"
#include "text/jinja/print.h"
#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

// How jinja2 names a value in its messages on missing attributes.
std::string Described(const Value& value) {
  if (value.IsNone()) return "None";
  return fmt::format("{} object", value.TypeName());
}

Value NoAttribute(const Value& object, std::string_view name) {
  return Value::Missing(
      fmt::format("'{}' has no attribute {}", Described(object), Quoted(name)));
}

// The item `key` of a dict, list, tuple, range or string, or nothing when it
// has none.
std::optional<Value> FindItem(const Value& object, const Value& key) {
  if (const Dict* dict = object.dict()) {
    const Value* found = dict->Find(key);
    return found != nullptr ? std::optional<Value>(*found) : std::nullopt;
  }
  const auto index = key.AsInt();
  if (!index) return std::nullopt;
  const auto place = [&index](size_t size) -> std::optional<size_t> {
    const auto length = static_cast<int64_t>(size);
    if (*index < -length || *index >= length) return std::nullopt;
    return static_cast<size_t>(*index < 0 ? *index + length : *index);
  };
  if (const Sequence* sequence = object.sequence()) {
    const auto i = place(sequence->items.size());
    return i ? std::optional<Value>(sequence->items[*i]) : std::nullopt;
  }
  if (const auto* range = object.As<Value::RangePtr>()) {
    const auto i = place(static_cast<size_t>((*range)->length));
    if (!i) return std::nullopt;
    return Value::Int((*range)->start +
                      static_cast<int64_t>(*i) * (*range)->step);
  }
  if (!object.IsString()) return std::nullopt;
  const auto i = place(CodePointCount(object.text()));
  if (!i) return std::nullopt;
  const size_t begin = CodePointOffset(object.text(), *i);
  size_t end = begin;
  NextCodePoint(object.text(), end);
  return Value(std::make_shared<const String>(
      String{object.text().substr(begin, end - begin),
             (*object.As<Value::StringPtr>())->markup}));
}

// A Python attribute of the value: a method, or an attribute of an object.
Result<std::optional<Value>> FindAttribute(Context& context,
                                           const Value& object,
                                           std::string_view name) {
  if (Object* instance = object.object())
    return instance->GetAttribute(context, name);
  return FindMethod(context, object, name);
}

Status SpendItemAccess(Context& context, const Value& object,
                       const Value& key) {
  HX_RETURN_IF_ERROR(context.Spend(1));
  if (key.IsString())
    HX_RETURN_IF_ERROR(context.SpendScan(key.text().size() * 8));
  if (!object.IsString()) return OkStatus();
  HX_RETURN_IF_ERROR(context.SpendScan(object.text().size()));
  return context.SpendBytes(sizeof(String));
}

// A slice with Python's defaults and clamping for a sequence of `length` items.
struct ResolvedSlice {
  int64_t start = 0;
  int64_t end = 0;
  int64_t step = 1;
  int64_t count = 0;
};

Result<std::optional<int64_t>> SliceIndex(Context& context,
                                          const Value& bound) {
  if (bound.IsNone()) return std::optional<int64_t>();
  if (const auto index = bound.AsInt()) return std::optional<int64_t>(*index);
  if (const auto* undefined = bound.As<Undefined>())
    return context.Fail(*undefined->why);
  return context.Fail("slice indices must be integers or None");
}

Result<ResolvedSlice> ResolveSlice(Context& context, const SliceBounds& bounds,
                                   int64_t length) {
  HX_ASSIGN_OR_RETURN(const auto start, SliceIndex(context, bounds.start));
  HX_ASSIGN_OR_RETURN(const auto stop, SliceIndex(context, bounds.stop));
  HX_ASSIGN_OR_RETURN(const auto step_given, SliceIndex(context, bounds.step));
  const int64_t step =
      std::clamp<int64_t>(step_given.value_or(1), -INT64_MAX, INT64_MAX);
  if (step == 0) return context.Fail("slice step cannot be zero");
  const int64_t lowest = step < 0 ? -1 : 0;
  const int64_t highest = step < 0 ? length - 1 : length;
  const auto clamp = [&](int64_t index) {
    if (index < 0) index += length;
    return std::clamp(index, lowest, highest);
  };
  ResolvedSlice slice;
  slice.step = step;
  slice.start = start ? clamp(*start) : (step < 0 ? highest : lowest);
  slice.end = stop ? clamp(*stop) : (step < 0 ? lowest : highest);
  if (step > 0 && slice.end > slice.start) {
    slice.count = (slice.end - slice.start - 1) / step + 1;
  }
  if (step < 0 && slice.end < slice.start) {
    slice.count = (slice.start - slice.end - 1) / -step + 1;
  }
  return slice;
}

Result<Value> SliceString(Context& context, const Value& object,
                          const SliceBounds& bounds) {
  const std::string& text = object.text();
  HX_RETURN_IF_ERROR(context.SpendScan(text.size() * 8));
  const std::vector<size_t> offsets = CodePointOffsets(text);
  HX_ASSIGN_OR_RETURN(
      const ResolvedSlice slice,
      ResolveSlice(context, bounds, static_cast<int64_t>(offsets.size()) - 1));
  std::string out;
  for (int64_t i = 0; i < slice.count; ++i) {
    const auto index = static_cast<size_t>(slice.start + i * slice.step);
    out.append(text, offsets[index], offsets[index + 1] - offsets[index]);
  }
  return context.NewString(std::move(out),
                           (*object.As<Value::StringPtr>())->markup);
}

// Bounds of ranges have 53 bits (range() sees to that), so only the step may
// overflow.
Result<Value> SliceRange(Context& context, const Range& range,
                         const SliceBounds& bounds) {
  HX_ASSIGN_OR_RETURN(const ResolvedSlice slice,
                      ResolveSlice(context, bounds, range.length));
  Range out;
  out.start = range.start + slice.start * range.step;
  out.stop = range.start + slice.end * range.step;
  out.length = slice.count;
  if (__builtin_mul_overflow(range.step, slice.step, &out.step)) {
    return context.Unsupported("a range with a step beyond 64 bits");
  }
  HX_RETURN_IF_ERROR(context.SpendBytes(sizeof(Range)));
  return Value(std::make_shared<const Range>(out));
}

// Yields the items of a list or tuple, sharing it.
class SequenceIterator final : public Iterator {
 public:
  explicit SequenceIterator(Value::SequencePtr sequence)
      : Iterator(sequence->depth + 1), sequence_(std::move(sequence)) {}
  Result<std::optional<Value>> Next(Context&) override {
    if (next_ >= sequence_->items.size()) return std::optional<Value>();
    return std::optional<Value>(sequence_->items[next_++]);
  }

 private:
  Value::SequencePtr sequence_;
  size_t next_ = 0;
};

class RangeIterator final : public Iterator {
 public:
  explicit RangeIterator(const Range& range) : Iterator(1), range_(range) {}
  Result<std::optional<Value>> Next(Context&) override {
    if (next_ >= range_.length) return std::optional<Value>();
    return std::optional<Value>(
        Value::Int(range_.start + next_++ * range_.step));
  }

 private:
  Range range_;
  int64_t next_ = 0;
};

class StringIterator final : public Iterator {
 public:
  explicit StringIterator(Value::StringPtr string)
      : Iterator(1), string_(std::move(string)) {}
  Result<std::optional<Value>> Next(Context& context) override {
    if (next_ >= string_->text.size()) return std::optional<Value>();
    const size_t begin = next_;
    NextCodePoint(string_->text, next_);
    HX_ASSIGN_OR_RETURN(Value character, context.NewString(string_->text.substr(
                                             begin, next_ - begin)));
    return std::optional<Value>(std::move(character));
  }

 private:
  Value::StringPtr string_;
  size_t next_ = 0;
};

class DictIterator final : public Iterator {
 public:
  DictIterator(Value::DictPtr dict, DictView::What what)
      : Iterator(dict->depth() + 2), dict_(std::move(dict)), what_(what) {}
  Result<std::optional<Value>> Next(Context& context) override {
    if (next_ >= dict_->entries().size()) return std::optional<Value>();
    const auto& [key, value] = dict_->entries()[next_++];
    if (what_ == DictView::What::kKeys) return std::optional<Value>(key);
    if (what_ == DictView::What::kValues) return std::optional<Value>(value);
    HX_ASSIGN_OR_RETURN(Value pair, context.NewTuple({key, value}));
    return std::optional<Value>(std::move(pair));
  }

 private:
  Value::DictPtr dict_;
  DictView::What what_;
  size_t next_ = 0;
};

class VectorIterator final : public Iterator {
 public:
  VectorIterator(std::vector<Value> items, int depth)
      : Iterator(depth), items_(std::move(items)) {}
  Result<std::optional<Value>> Next(Context&) override {
    if (next_ >= items_.size()) return std::optional<Value>();
    return std::optional<Value>(std::move(items_[next_++]));
  }

 private:
  std::vector<Value> items_;
  size_t next_ = 0;
};

}  // namespace

std::shared_ptr<Iterator> IterateVector(std::vector<Value> items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.Depth());
  return std::make_shared<VectorIterator>(std::move(items), depth + 1);
}

Result<Value> GetAttribute(Context& context, const Value& object,
                           std::string_view name) {
  if (const auto* undefined = object.As<Undefined>())
    return context.Fail(*undefined->why);
  HX_RETURN_IF_ERROR(context.Spend(1));
  HX_ASSIGN_OR_RETURN(auto attribute, FindAttribute(context, object, name));
  if (attribute) return std::move(*attribute);
  if (const Dict* dict = object.dict()) {
    if (const Value* item = dict->Find(name)) return *item;
  }
  return NoAttribute(object, name);
}

Result<Value> GetItem(Context& context, const Value& object, const Value& key) {
  if (const auto* undefined = object.As<Undefined>())
    return context.Fail(*undefined->why);
  HX_RETURN_IF_ERROR(SpendItemAccess(context, object, key));
  if (auto item = FindItem(object, key)) return std::move(*item);
  if (key.IsString()) {
    HX_ASSIGN_OR_RETURN(auto attribute,
                        FindAttribute(context, object, key.text()));
    if (attribute) return std::move(*attribute);
    return NoAttribute(object, key.text());
  }
  auto shown = Repr(context, key);
  return Value::Missing(fmt::format(
      "{} has no element {}", Described(object),
      shown.ok() ? Printable(*shown) : std::string(key.TypeName())));
}

Result<Value> GetSlice(Context& context, const Value& object,
                       const SliceBounds& bounds) {
  if (const auto* undefined = object.As<Undefined>())
    return context.Fail(*undefined->why);
  if (object.IsString()) return SliceString(context, object, bounds);
  if (const auto* range = object.As<Value::RangePtr>()) {
    return SliceRange(context, **range, bounds);
  }
  const Sequence* sequence = object.sequence();
  if (sequence == nullptr) {
    if (object.dict() != nullptr)
      return context.Fail("unhashable type: 'slice'");
    return context.Fail(
        fmt::format("'{}' object is not subscriptable", object.TypeName()));
  }
  HX_ASSIGN_OR_RETURN(
      const ResolvedSlice slice,
      ResolveSlice(context, bounds,
                   static_cast<int64_t>(sequence->items.size())));
  HX_RETURN_IF_ERROR(context.Spend(slice.count));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(slice.count));
  for (int64_t i = 0; i < slice.count; ++i)
    items.push_back(
        sequence->items[static_cast<size_t>(slice.start + i * slice.step)]);
  return sequence->tuple ? context.NewTuple(std::move(items))
                         : context.NewList(std::move(items));
}

Result<int64_t> Length(Context& context, const Value& value) {
  HX_RETURN_IF_ERROR(context.Spend(1));
  if (value.IsString()) {
    HX_RETURN_IF_ERROR(context.SpendScan(value.text().size()));
    return static_cast<int64_t>(CodePointCount(value.text()));
  }
  if (value.sequence() != nullptr)
    return static_cast<int64_t>(value.sequence()->items.size());
  if (value.dict() != nullptr)
    return static_cast<int64_t>(value.dict()->entries().size());
  if (const auto* range = value.As<Value::RangePtr>()) return (*range)->length;
  if (const auto* view = value.As<Value::ViewPtr>())
    return static_cast<int64_t>((*view)->dict->entries().size());
  if (value.IsUndefined()) return 0;
  return context.Fail(
      fmt::format("object of type '{}' has no len()", value.TypeName()));
}

bool IsIterable(const Value& value) {
  return value.IsString() || value.sequence() != nullptr ||
         value.dict() != nullptr || value.As<Value::RangePtr>() != nullptr ||
         value.As<Value::ViewPtr>() != nullptr ||
         value.As<Value::IteratorPtr>() != nullptr || value.IsUndefined();
}

Result<std::shared_ptr<Iterator>> Iterate(Context& context,
                                          const Value& value) {
  HX_RETURN_IF_ERROR(context.Spend(1));
  if (const auto* string = value.As<Value::StringPtr>())
    return {std::make_shared<StringIterator>(*string)};
  if (const auto* sequence = value.As<Value::SequencePtr>())
    return {std::make_shared<SequenceIterator>(*sequence)};
  if (const auto* dict = value.As<Value::DictPtr>())
    return {std::make_shared<DictIterator>(*dict, DictView::What::kKeys)};
  if (const auto* view = value.As<Value::ViewPtr>())
    return {std::make_shared<DictIterator>((*view)->dict, (*view)->what)};
  if (const auto* range = value.As<Value::RangePtr>())
    return {std::make_shared<RangeIterator>(**range)};
  if (const auto* iterator = value.As<Value::IteratorPtr>()) return *iterator;
  if (value.IsUndefined()) return IterateVector({});
  return context.Fail(
      fmt::format("'{}' object is not iterable", value.TypeName()));
}

Result<std::vector<Value>> ToVector(Context& context, const Value& value) {
  HX_ASSIGN_OR_RETURN(const auto iterator, Iterate(context, value));
  std::vector<Value> items;
  while (true) {
    HX_RETURN_IF_ERROR(context.Spend(1));
    HX_RETURN_IF_ERROR(context.SpendBytes(sizeof(Value)));
    HX_ASSIGN_OR_RETURN(auto item, iterator->Next(context));
    if (!item) return items;
    items.push_back(std::move(*item));
  }
}

Result<Value> Call(Context& context, const Value& callee,
                   const CallArgs& args) {
  if (const auto* undefined = callee.As<Undefined>())
    return context.Fail(*undefined->why);
  HX_RETURN_IF_ERROR(context.Spend(1));
  if (const auto* callable = callee.As<Value::CallablePtr>())
    return (*callable)->function(context, (*callable)->self, args);
  if (Object* object = callee.object()) return object->Call(context, args);
  return context.Fail(
      fmt::format("'{}' object is not callable", callee.TypeName()));
}

}  // namespace hexllm::jinja

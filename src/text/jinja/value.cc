#include "text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "text/jinja/context.h"
#include "text/jinja/overloaded.h"

namespace hexllm::jinja {
namespace {

// None < numbers < strings; only for dict keys.
int KeyRank(const Value& key) {
  if (key.IsNone()) return 0;
  return key.IsNumber() ? 1 : 2;
}

bool NumberLess(const Value& a, const Value& b) {
  const auto x = a.AsInt();
  const auto y = b.AsInt();
  if (x && y) return *x < *y;
  return *a.AsFloat() < *b.AsFloat();
}

}  // namespace

Value Value::Text(std::string text) {
  return Value(std::make_shared<const String>(String{std::move(text), false}));
}

Value Value::Missing(std::string why) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(why))});
}

const Sequence* Value::sequence() const {
  const SequencePtr* pointer = As<SequencePtr>();
  return pointer != nullptr ? pointer->get() : nullptr;
}

const Dict* Value::dict() const {
  const DictPtr* pointer = As<DictPtr>();
  return pointer != nullptr ? pointer->get() : nullptr;
}

Object* Value::object() const {
  Object* const* pointer = As<Object*>();
  return pointer != nullptr ? *pointer : nullptr;
}

std::optional<int64_t> Value::AsInt() const {
  if (const auto* number = As<int64_t>()) return *number;
  if (const auto* truth = As<bool>()) return *truth ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::AsFloat() const {
  if (const auto* number = As<double>()) return *number;
  if (const auto number = AsInt()) return static_cast<double>(*number);
  return std::nullopt;
}

bool Value::Truthy() const {
  return std::visit(
      Overloaded{
          [](const None&) { return false; }, [](bool truth) { return truth; },
          [](int64_t number) { return number != 0; },
          [](double number) { return number != 0; },
          [](const Undefined&) { return false; },
          [](const StringPtr& string) { return !string->text.empty(); },
          [](const SequencePtr& sequence) { return !sequence->items.empty(); },
          [](const DictPtr& dict) { return !dict->entries().empty(); },
          [](const RangePtr& range) { return range->length > 0; },
          [](const ViewPtr& view) { return !view->dict->entries().empty(); },
          [](const CallablePtr&) { return true; },
          [](const IteratorPtr&) { return true; },
          [](Object*) { return true; }},
      data_);
}

std::string_view Value::TypeName() const {
  using Name = std::string_view;
  return std::visit(
      Overloaded{[](const None&) -> Name { return "NoneType"; },
                 [](bool) -> Name { return "bool"; },
                 [](int64_t) -> Name { return "int"; },
                 [](double) -> Name { return "float"; },
                 [](const Undefined&) -> Name { return "Undefined"; },
                 [](const StringPtr& string) -> Name {
                   return string->markup ? "Markup" : "str";
                 },
                 [](const SequencePtr& sequence) -> Name {
                   return sequence->tuple ? "tuple" : "list";
                 },
                 [](const DictPtr&) -> Name { return "dict"; },
                 [](const RangePtr&) -> Name { return "range"; },
                 [](const ViewPtr& view) -> Name {
                   if (view->what == DictView::What::kKeys) return "dict_keys";
                   return view->what == DictView::What::kValues ? "dict_values"
                                                                : "dict_items";
                 },
                 [](const CallablePtr&) -> Name {
                   return "builtin_function_or_method";
                 },
                 [](const IteratorPtr&) -> Name { return "generator"; },
                 [](Object* object) -> Name { return object->TypeName(); }},
      data_);
}

int Value::Depth() const {
  if (const auto* p = As<SequencePtr>()) return (*p)->depth;
  if (const auto* p = As<DictPtr>()) return (*p)->depth();
  if (const auto* p = As<ViewPtr>()) return (*p)->dict->depth() + 1;
  if (const auto* p = As<CallablePtr>()) return (*p)->self.Depth() + 1;
  if (const auto* p = As<IteratorPtr>()) return (*p)->depth();
  return 0;
}

bool KeyLess(const Value& a, const Value& b) {
  const int rank_a = KeyRank(a);
  const int rank_b = KeyRank(b);
  if (rank_a != rank_b) return rank_a < rank_b;
  if (rank_a == 0) return false;
  return rank_a == 1 ? NumberLess(a, b) : a.text() < b.text();
}

bool Dict::IsKey(const Value& value) {
  if (const auto* number = value.As<double>()) return !std::isnan(*number);
  return value.IsNone() || value.IsNumber() || value.IsString();
}

Dict::Dict(std::vector<Entry> entries) {
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto less = [&entries](uint32_t i, uint32_t j) {
    return KeyLess(entries[i].key, entries[j].key);
  };
  std::stable_sort(order.begin(), order.end(), less);
  // Of equal keys the first gives the place and the last the value.
  std::vector<bool> dropped(entries.size(), false);
  for (size_t i = 1, first = 0; i < order.size(); ++i) {
    if (less(order[first], order[i])) {
      first = i;
      continue;
    }
    entries[order[first]].value = entries[order[i]].value;
    dropped[order[i]] = true;
  }
  std::vector<uint32_t> position(entries.size());
  for (uint32_t i = 0; i < entries.size(); ++i) {
    position[i] = static_cast<uint32_t>(entries_.size());
    if (dropped[i]) continue;
    depth_ = std::max(depth_, entries[i].value.Depth() + 1);
    entries_.push_back(std::move(entries[i]));
  }
  for (const uint32_t i : order) {
    if (!dropped[i]) sorted_.push_back(position[i]);
  }
}

const Value* Dict::Find(const Value& key) const {
  if (!IsKey(key)) return nullptr;
  const auto it = std::lower_bound(sorted_.begin(), sorted_.end(), key,
                                   [this](uint32_t i, const Value& k) {
                                     return KeyLess(entries_[i].key, k);
                                   });
  if (it == sorted_.end() || KeyLess(key, entries_[*it].key)) return nullptr;
  return &entries_[*it].value;
}

const Value* Dict::Find(std::string_view key) const {
  const auto before = [this, key](uint32_t i) {
    const Value& other = entries_[i].key;
    return !other.IsString() || other.text() < key;
  };
  const auto it = std::partition_point(sorted_.begin(), sorted_.end(), before);
  if (it == sorted_.end() || entries_[*it].key.text() != key) return nullptr;
  return &entries_[*it].value;
}

Result<Value> Object::Call(Context& context, const CallArgs&) {
  return context.Fail(fmt::format("'{}' object is not callable", TypeName()));
}

Result<std::optional<Value>> Namespace::GetAttribute(Context& context,
                                                     std::string_view name) {
  HX_RETURN_IF_ERROR(
      context.Spend(1 + static_cast<int64_t>(attributes_.size() / 8)));
  for (const auto& [key, value] : attributes_) {
    if (key == name) return std::optional<Value>(value);
  }
  return std::optional<Value>();
}

Status Namespace::Set(Context& context, std::string_view name, Value value) {
  if (name.starts_with('_')) {
    return context.Fail(
        fmt::format("a namespace cannot store '{}': names with a leading "
                    "underscore are reserved",
                    name));
  }
  HX_RETURN_IF_ERROR(
      context.Spend(1 + static_cast<int64_t>(attributes_.size())));
  for (auto& [key, old] : attributes_) {
    if (key != name) continue;
    old = std::move(value);
    return OkStatus();
  }
  HX_RETURN_IF_ERROR(context.SpendBytes(sizeof(attributes_[0]) + name.size()));
  attributes_.emplace_back(name, std::move(value));
  return OkStatus();
}

}  // namespace hexllm::jinja

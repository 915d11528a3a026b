#include "text/jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "text/jinja/args.h"
#include "text/jinja/ops.h"
#include "text/jinja/print.h"
#include "text/jinja/table.h"

namespace hexllm::jinja {
namespace {

Result<Value> DictGet(Context& context, const Value& self,
                      const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"get", {"key", "default"}, 1}));
  if (bound[0].IsString()) {
    HX_RETURN_IF_ERROR(context.SpendScan(bound[0].text().size() * 8));
  }
  if (const Value* found = self.dict()->Find(bound[0])) return *found;
  return bound[1];
}

template <DictView::What kWhat>
Result<Value> DictViewOf(Context& context, const Value& self,
                         const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"items", {}, 0}).status());
  HX_RETURN_IF_ERROR(context.SpendBytes(sizeof(DictView)));
  return Value(std::make_shared<const DictView>(
      DictView{kWhat, *self.As<Value::DictPtr>()}));
}

Result<Value> Copy(Context& context, const Value& self, const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"copy", {}, 0}).status());
  return self;  // values do not change
}

Result<Value> ListCount(Context& context, const Value& self,
                        const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"count", {"value"}, 1}));
  int64_t count = 0;
  for (const Value& item : self.sequence()->items) {
    HX_ASSIGN_OR_RETURN(const bool same, Equal(context, item, bound[0]));
    count += same ? 1 : 0;
  }
  return Value::Int(count);
}

Result<Value> ListIndex(Context& context, const Value& self,
                        const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"index", {"value", "start", "stop"}, 1}));
  HX_ASSIGN_OR_RETURN(int64_t start, bound.Int(context, 1, 0));
  HX_ASSIGN_OR_RETURN(int64_t stop, bound.Int(context, 2, INT64_MAX));
  const std::vector<Value>& items = self.sequence()->items;
  const auto length = static_cast<int64_t>(items.size());
  if (start < 0) start = std::max<int64_t>(start + length, 0);
  if (stop < 0) stop += length;
  for (int64_t i = start; i < std::min(stop, length); ++i) {
    HX_ASSIGN_OR_RETURN(
        const bool same,
        Equal(context, items[static_cast<size_t>(i)], bound[0]));
    if (same) return Value::Int(i);
  }
  HX_ASSIGN_OR_RETURN(const std::string shown, Repr(context, bound[0]));
  return context.Fail(fmt::format("{} is not in {}", shown, self.TypeName()));
}

constexpr MethodRow kDictRows[] = {
    {"copy", &Copy},
    {"get", &DictGet},
    {"items", &DictViewOf<DictView::What::kItems>},
    {"keys", &DictViewOf<DictView::What::kKeys>},
    {"values", &DictViewOf<DictView::What::kValues>},
};
constexpr MethodRow kListRows[] = {
    {"copy", &Copy}, {"count", &ListCount}, {"index", &ListIndex}};
constexpr MethodRow kTupleRows[] = {{"count", &ListCount},
                                    {"index", &ListIndex}};

constexpr std::string_view kDictMutators[] = {"clear", "pop", "popitem",
                                              "setdefault", "update"};
constexpr std::string_view kListMutators[] = {
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};

bool IsMutator(const Value& object, std::string_view name) {
  if (object.dict() != nullptr)
    return std::find(std::begin(kDictMutators), std::end(kDictMutators),
                     name) != std::end(kDictMutators);
  if (object.sequence() == nullptr || object.sequence()->tuple) return false;
  return std::find(std::begin(kListMutators), std::end(kListMutators), name) !=
         std::end(kListMutators);
}

const MethodRow* FindMethodRow(const Value& object, std::string_view name) {
  if (object.IsString()) {
    const MethodRow* row = FindStringMethod(name);
    return row != nullptr ? row : FindStringQuery(name);
  }
  if (object.dict() != nullptr) return FindRow(kDictRows, name);
  if (object.sequence() != nullptr && object.sequence()->tuple)
    return FindRow(kTupleRows, name);
  return object.sequence() != nullptr ? FindRow(kListRows, name) : nullptr;
}

}  // namespace

Result<std::optional<Value>> FindMethod(Context& context, const Value& object,
                                        std::string_view name) {
  if (const MethodRow* row = FindMethodRow(object, name)) {
    HX_ASSIGN_OR_RETURN(
        Value method, context.NewCallable({row->name, row->function, object}));
    return std::optional<Value>(std::move(method));
  }
  if (!IsMutator(object, name)) return std::optional<Value>();
  return std::optional<Value>(Value::Missing(
      fmt::format("access to attribute '{}' of '{}' object is unsafe.", name,
                  object.TypeName())));
}

}  // namespace hexllm::jinja

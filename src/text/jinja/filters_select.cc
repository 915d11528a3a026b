// Filters that apply a filter or a test to each item: map, select, reject,
// selectattr, rejectattr. They are lazy, as in jinja2. (See jinja/filters.h.)
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "text/jinja/args.h"
#include "text/jinja/filters.h"
#include "text/jinja/iterate.h"
#include "text/jinja/ops.h"
#include "text/jinja/predicates.h"
#include "text/jinja/table.h"

namespace hexllm::jinja {
namespace {

Result<std::string> NameArgument(Context& context, const CallArgs& args,
                                 size_t index) {
  const Value& name = args.positional[index];
  if (name.IsString()) return name.text();
  return context.Fail(fmt::format(
      "the name of a filter or test must be str, not {}", name.TypeName()));
}

CallArgs WithoutFirst(const CallArgs& args, size_t count) {
  CallArgs rest = args;
  rest.positional.erase(
      rest.positional.begin(),
      rest.positional.begin() + static_cast<ptrdiff_t>(count));
  return rest;
}

// map(attribute="a.b", default=...)
Result<Value> MapAttribute(Context& context, std::shared_ptr<Iterator> source,
                           const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"map", {"attribute", "default"}, 1}));
  const auto get = [path = bound[0], fallback = bound[1]](
                       Context& c,
                       const Value& item) -> Result<std::optional<Value>> {
    HX_ASSIGN_OR_RETURN(Value value, GetByPath(c, item, path));
    if (value.IsUndefined() && !fallback.IsNone())
      return std::optional<Value>(fallback);
    return std::optional<Value>(std::move(value));
  };
  return context.NewIterator(MakeFiltered(std::move(source), get));
}

Result<Value> Map(Context& context, const Value& self, const CallArgs& args) {
  if (!self.Truthy()) return context.NewIterator(IterateVector({}));
  HX_ASSIGN_OR_RETURN(auto source, Iterate(context, self));
  const auto is_attribute = [](const auto& argument) {
    return argument.first == "attribute";
  };
  if (args.positional.empty() &&
      std::any_of(args.named.begin(), args.named.end(), is_attribute)) {
    return MapAttribute(context, std::move(source), args);
  }
  if (args.positional.empty())
    return context.Fail("map requires a filter argument");
  HX_ASSIGN_OR_RETURN(const std::string name, NameArgument(context, args, 0));
  const NativeFunction function = FindFilter(name);
  if (function == nullptr) {
    if (IsUnsupportedFilter(name))
      return context.Unsupported(fmt::format("the filter '{}'", name));
    return context.Fail(fmt::format("no filter named '{}'", name));
  }
  const auto apply = [function, rest = WithoutFirst(args, 1)](
                         Context& c,
                         const Value& item) -> Result<std::optional<Value>> {
    HX_ASSIGN_OR_RETURN(Value value, function(c, item, rest));
    return std::optional<Value>(std::move(value));
  };
  return context.NewIterator(MakeFiltered(std::move(source), apply));
}

// What select() and its relatives do with each item.
struct Selection {
  bool by_attribute = false;
  bool reject = false;
};

Result<Value> SelectItems(Context& context, const Value& self,
                          const CallArgs& args, Selection selection) {
  if (!self.Truthy()) return context.NewIterator(IterateVector({}));
  HX_ASSIGN_OR_RETURN(auto source, Iterate(context, self));
  const size_t name_index = selection.by_attribute ? 1 : 0;
  if (args.positional.size() < name_index)
    return context.Fail("Missing parameter for attribute name");
  const Value path = selection.by_attribute ? args.positional[0] : Value();
  TestFunction test = nullptr;
  CallArgs rest;
  if (args.positional.size() > name_index) {
    HX_ASSIGN_OR_RETURN(const std::string name,
                        NameArgument(context, args, name_index));
    test = FindTest(name);
    if (test == nullptr)
      return context.Fail(fmt::format("no test named '{}'", name));
    rest = WithoutFirst(args, name_index + 1);
  }
  const auto keep = [path, test, rest, reject = selection.reject](
                        Context& c,
                        const Value& item) -> Result<std::optional<Value>> {
    HX_ASSIGN_OR_RETURN(const Value value, GetByPath(c, item, path));
    bool holds = value.Truthy();
    if (test != nullptr) {
      HX_ASSIGN_OR_RETURN(holds, test(c, value, rest));
    }
    return holds != reject ? std::optional<Value>(item) : std::nullopt;
  };
  return context.NewIterator(MakeFiltered(std::move(source), keep));
}

Result<Value> Select(Context& context, const Value& self,
                     const CallArgs& args) {
  return SelectItems(context, self, args, {false, false});
}
Result<Value> Reject(Context& context, const Value& self,
                     const CallArgs& args) {
  return SelectItems(context, self, args, {false, true});
}
Result<Value> SelectAttr(Context& context, const Value& self,
                         const CallArgs& args) {
  return SelectItems(context, self, args, {true, false});
}
Result<Value> RejectAttr(Context& context, const Value& self,
                         const CallArgs& args) {
  return SelectItems(context, self, args, {true, true});
}

constexpr FilterRow kRows[] = {
    {"map", &Map},
    {"reject", &Reject},
    {"rejectattr", &RejectAttr},
    {"select", &Select},
    {"selectattr", &SelectAttr},
};

}  // namespace

NativeFunction FindSelectFilter(std::string_view name) {
  return FindFunction(kRows, name);
}

}  // namespace hexllm::jinja

#include "text/jinja/functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/args.h"
#include "text/jinja/ops.h"
#include "text/jinja/print.h"
#include "text/jinja/strftime.h"

namespace hexllm::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // as in jinja2's sandbox
constexpr int64_t kMaxRangeBound = int64_t{1} << 53;

Result<Value> RangeFunction(Context& context, const Value&,
                            const CallArgs& args) {
  if (!args.named.empty())
    return context.Fail("range() takes no keyword arguments");
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"range", {"start", "stop", "step"}, 1}));
  int64_t numbers[3] = {0, 0, 1};
  for (size_t i = 0; i < args.positional.size(); ++i) {
    if (const auto* undefined = bound[i].As<Undefined>())
      return context.Fail(*undefined->why);
    HX_ASSIGN_OR_RETURN(numbers[i], bound.Int(context, i, 0));
    if (numbers[i] > kMaxRangeBound || numbers[i] < -kMaxRangeBound)
      return context.Unsupported("range() beyond 2^53");
  }
  if (args.positional.size() == 1) std::swap(numbers[0], numbers[1]);
  Range range{numbers[0], numbers[1], numbers[2], 0};
  if (range.step == 0) return context.Fail("range() arg 3 must not be zero");
  const int64_t distance =
      range.step > 0 ? range.stop - range.start : range.start - range.stop;
  if (distance > 0) range.length = (distance - 1) / std::abs(range.step) + 1;
  if (range.length > kMaxRange) {
    return context.Fail(fmt::format(
        "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).",
        kMaxRange));
  }
  HX_RETURN_IF_ERROR(context.SpendBytes(sizeof(Range)));
  return Value(std::make_shared<const Range>(range));
}

// The entries of dict(*args, **kwargs).
Result<std::vector<Dict::Entry>> DictEntries(Context& context,
                                             const CallArgs& args) {
  if (args.positional.size() > 1)
    return context.Fail(fmt::format("dict expected at most 1 argument, got {}",
                                    args.positional.size()));
  std::vector<Dict::Entry> entries;
  if (!args.positional.empty() && args.positional[0].dict() != nullptr) {
    entries = args.positional[0].dict()->entries();
    HX_RETURN_IF_ERROR(context.Spend(static_cast<int64_t>(entries.size())));
  } else if (!args.positional.empty()) {
    HX_ASSIGN_OR_RETURN(const std::vector<Value> pairs,
                        ToVector(context, args.positional[0]));
    for (const Value& pair : pairs) {
      HX_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(context, pair));
      if (items.size() != 2)
        return context.Fail(fmt::format(
            "a dict is made of pairs, found {} items", items.size()));
      entries.push_back({std::move(items[0]), std::move(items[1])});
    }
  }
  for (const auto& [name, value] : args.named)
    entries.push_back({Value::Text(name), value});
  return entries;
}

Result<Value> DictFunction(Context& context, const Value&,
                           const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(std::vector<Dict::Entry> entries,
                      DictEntries(context, args));
  return context.NewDict(std::move(entries));
}

Result<Value> NamespaceFunction(Context& context, const Value&,
                                const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const std::vector<Dict::Entry> entries,
                      DictEntries(context, args));
  HX_ASSIGN_OR_RETURN(Namespace* const space,
                      context.Own(std::make_unique<Namespace>()));
  for (const auto& [key, value] : entries) {
    if (!key.IsString())
      return context.Unsupported("a namespace with attributes that are no str");
    HX_RETURN_IF_ERROR(space->Set(context, key.text(), value));
  }
  return Value(static_cast<Object*>(space));
}

// The template's own error message, as it is: it is meant for the user.
Result<Value> RaiseException(Context& context, const Value&,
                             const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"raise_exception", {"message"}, 1}));
  HX_ASSIGN_OR_RETURN(std::string message, ToText(context, bound[0]));
  return Error{ErrorCode::kBadInput, std::move(message)};
}

Result<Value> StrftimeNow(Context& context, const Value&,
                          const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"strftime_now", {"format"}, 1}));
  HX_ASSIGN_OR_RETURN(const std::string format, bound.Str(context, 0, ""));
  HX_ASSIGN_OR_RETURN(std::string text,
                      FormatTime(context, format, *context.now()));
  return context.NewString(std::move(text));
}

// cycler(a, b, ...): next() gives the items in turn.
class Cycler final : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  std::string_view TypeName() const override { return "cycler"; }

  Result<std::optional<Value>> GetAttribute(Context& context,
                                            std::string_view name) override {
    if (name == "current") return std::optional<Value>(items_[next_]);
    if (name != "next" && name != "reset") return std::optional<Value>();
    const NativeFunction function = name == "next" ? &Next : &Reset;
    HX_ASSIGN_OR_RETURN(
        Value method, context.NewCallable({"cycler method", function,
                                           Value(static_cast<Object*>(this))}));
    return std::optional<Value>(std::move(method));
  }

 private:
  static Result<Value> Next(Context&, const Value& self, const CallArgs&) {
    auto* cycler = static_cast<Cycler*>(self.object());
    const size_t current = cycler->next_;
    cycler->next_ = (current + 1) % cycler->items_.size();
    return cycler->items_[current];
  }
  static Result<Value> Reset(Context&, const Value& self, const CallArgs&) {
    static_cast<Cycler*>(self.object())->next_ = 0;
    return Value();
  }

  std::vector<Value> items_;
  size_t next_ = 0;
};

Result<Value> CyclerFunction(Context& context, const Value&,
                             const CallArgs& args) {
  if (args.positional.empty() || !args.named.empty())
    return context.Fail("cycler() needs at least one item");
  HX_ASSIGN_OR_RETURN(Cycler* const cycler,
                      context.Own(std::make_unique<Cycler>(args.positional)));
  return Value(static_cast<Object*>(cycler));
}

// joiner(sep): nothing at the first call, the separator at all others.
class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view TypeName() const override { return "joiner"; }
  bool IsCallable() const override { return true; }
  Result<std::optional<Value>> GetAttribute(Context&,
                                            std::string_view) override {
    return std::optional<Value>();
  }
  Result<Value> Call(Context&, const CallArgs&) override {
    const bool first = !used_;
    used_ = true;
    return first ? Value::Text("") : separator_;
  }

 private:
  Value separator_;
  bool used_ = false;
};

Result<Value> JoinerFunction(Context& context, const Value&,
                             const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"joiner", {"sep"}, 0}));
  HX_ASSIGN_OR_RETURN(Joiner* const joiner,
                      context.Own(std::make_unique<Joiner>(
                          bound.Has(0) ? bound[0] : Value::Text(", "))));
  return Value(static_cast<Object*>(joiner));
}

Result<Value> LipsumFunction(Context& context, const Value&, const CallArgs&) {
  return context.Unsupported("the function lipsum()");
}

struct FunctionRow {
  std::string_view name;
  NativeFunction function;
};

constexpr FunctionRow kRows[] = {
    {"cycler", &CyclerFunction},       {"dict", &DictFunction},
    {"joiner", &JoinerFunction},       {"lipsum", &LipsumFunction},
    {"namespace", &NamespaceFunction}, {"raise_exception", &RaiseException},
    {"range", &RangeFunction},
};

}  // namespace

Status DefineFunctions(Context& context, Scope& globals) {
  for (const FunctionRow& row : kRows) {
    HX_ASSIGN_OR_RETURN(Value function,
                        context.NewCallable({row.name, row.function, Value()}));
    globals.Set(row.name, std::move(function));
  }
  if (!context.now()) return OkStatus();
  HX_ASSIGN_OR_RETURN(
      Value strftime_now,
      context.NewCallable({"strftime_now", &StrftimeNow, Value()}));
  globals.Set("strftime_now", std::move(strftime_now));
  return OkStatus();
}

}  // namespace hexllm::jinja

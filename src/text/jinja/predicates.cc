#include "text/jinja/predicates.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "text/jinja/args.h"
#include "text/jinja/filters.h"
#include "text/jinja/markup.h"
#include "text/jinja/ops.h"
#include "text/jinja/print.h"
#include "text/jinja/table.h"
#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

// A test without arguments that only looks at the value.
template <bool (*kPredicate)(const Value&)>
Result<bool> Simple(Context& context, const Value& value,
                    const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"test", {}, 0}).status());
  return kPredicate(value);
}

bool IsDefined(const Value& value) { return !value.IsUndefined(); }
bool IsUndefined(const Value& value) { return value.IsUndefined(); }
bool IsNone(const Value& value) { return value.IsNone(); }
bool IsBoolean(const Value& value) { return value.As<bool>() != nullptr; }
bool IsTrue(const Value& value) {
  return value.As<bool>() != nullptr && *value.As<bool>();
}
bool IsFalse(const Value& value) {
  return value.As<bool>() != nullptr && !*value.As<bool>();
}
bool IsInteger(const Value& value) { return value.As<int64_t>() != nullptr; }
bool IsFloat(const Value& value) { return value.As<double>() != nullptr; }
bool IsNumber(const Value& value) { return value.IsNumber(); }
bool IsString(const Value& value) { return value.IsString(); }
bool IsMapping(const Value& value) { return value.dict() != nullptr; }
bool IsSequence(const Value& value) {
  if (value.IsUndefined())
    return true;  // an Undefined has a length, 0, and __getitem__, which fails
  return value.IsString() || value.sequence() != nullptr ||
         value.dict() != nullptr || value.As<Value::RangePtr>() != nullptr;
}
bool IsCallable(const Value& value) {
  if (value.IsUndefined())
    return true;  // an Undefined has __call__, which fails
  return value.As<Value::CallablePtr>() != nullptr ||
         (value.object() != nullptr && value.object()->IsCallable());
}

Result<bool> LowerTest(Context& context, const Value& value,
                       const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"lower", {}, 0}).status());
  HX_ASSIGN_OR_RETURN(const std::string text, ToText(context, value));
  return IsAllLower(text);
}

Result<bool> UpperTest(Context& context, const Value& value,
                       const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"upper", {}, 0}).status());
  HX_ASSIGN_OR_RETURN(const std::string text, ToText(context, value));
  return IsAllUpper(text);
}

Result<bool> RemainderIs(Context& context, const Value& value,
                         const Value& divisor, int64_t expected) {
  if (value.IsString())
    return context.Fail("not all arguments converted during string formatting");
  HX_ASSIGN_OR_RETURN(const Value remainder,
                      Arithmetic(context, BinaryOp::kModulo, value, divisor));
  return Equal(context, remainder, Value::Int(expected));
}

Result<bool> Odd(Context& context, const Value& value, const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"odd", {}, 0}).status());
  return RemainderIs(context, value, Value::Int(2), 1);
}

Result<bool> Even(Context& context, const Value& value, const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"even", {}, 0}).status());
  return RemainderIs(context, value, Value::Int(2), 0);
}

Result<bool> DivisibleBy(Context& context, const Value& value,
                         const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"divisibleby", {"num"}, 1}));
  return RemainderIs(context, value, bound[0], 0);
}

template <CompareOp kOp>
Result<bool> CompareTest(Context& context, const Value& value,
                         const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"comparison", {"other"}, 1}));
  return Compare(context, kOp, value, bound[0]);
}

Result<bool> SameAs(Context& context, const Value& value,
                    const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"sameas", {"other"}, 1}));
  const Value& other = bound[0];
  if (value.TypeName() != other.TypeName()) return false;
  if (value.IsNone() || value.IsNumber()) return Equal(context, value, other);
  if (value.dict() != nullptr) return value.dict() == other.dict();
  if (value.sequence() != nullptr) return value.sequence() == other.sequence();
  if (value.IsString())
    return *value.As<Value::StringPtr>() == *other.As<Value::StringPtr>();
  return Equal(context, value, other);
}

Result<bool> Escaped(Context& context, const Value& value,
                     const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"escaped", {}, 0}).status());
  return IsMarkup(value);
}

Result<bool> IsFilter(Context& context, const Value& value,
                      const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"filter", {}, 0}).status());
  return value.IsString() && (FindFilter(value.text()) != nullptr ||
                              IsUnsupportedFilter(value.text()));
}

Result<bool> IsTest(Context& context, const Value& value,
                    const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"test", {}, 0}).status());
  return value.IsString() && FindTest(value.text()) != nullptr;
}

struct TestRow {
  std::string_view name;
  TestFunction function;
};

constexpr TestRow kRows[] = {
    {"defined", &Simple<IsDefined>},
    {"undefined", &Simple<IsUndefined>},
    {"none", &Simple<IsNone>},
    {"boolean", &Simple<IsBoolean>},
    {"true", &Simple<IsTrue>},
    {"false", &Simple<IsFalse>},
    {"integer", &Simple<IsInteger>},
    {"float", &Simple<IsFloat>},
    {"number", &Simple<IsNumber>},
    {"string", &Simple<IsString>},
    {"mapping", &Simple<IsMapping>},
    {"sequence", &Simple<IsSequence>},
    {"iterable", &Simple<IsIterable>},
    {"callable", &Simple<IsCallable>},
    {"lower", &LowerTest},
    {"upper", &UpperTest},
    {"odd", &Odd},
    {"even", &Even},
    {"divisibleby", &DivisibleBy},
    {"==", &CompareTest<CompareOp::kEqual>},
    {"eq", &CompareTest<CompareOp::kEqual>},
    {"equalto", &CompareTest<CompareOp::kEqual>},
    {"!=", &CompareTest<CompareOp::kNotEqual>},
    {"ne", &CompareTest<CompareOp::kNotEqual>},
    {">", &CompareTest<CompareOp::kGreater>},
    {"gt", &CompareTest<CompareOp::kGreater>},
    {"greaterthan", &CompareTest<CompareOp::kGreater>},
    {">=", &CompareTest<CompareOp::kGreaterEqual>},
    {"ge", &CompareTest<CompareOp::kGreaterEqual>},
    {"<", &CompareTest<CompareOp::kLess>},
    {"lt", &CompareTest<CompareOp::kLess>},
    {"lessthan", &CompareTest<CompareOp::kLess>},
    {"<=", &CompareTest<CompareOp::kLessEqual>},
    {"le", &CompareTest<CompareOp::kLessEqual>},
    {"in", &CompareTest<CompareOp::kIn>},
    {"sameas", &SameAs},
    {"escaped", &Escaped},
    {"filter", &IsFilter},
    {"test", &IsTest},
};

}  // namespace

TestFunction FindTest(std::string_view name) {
  return FindFunction(kRows, name);
}

}  // namespace hexllm::jinja

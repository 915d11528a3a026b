// Filters on numbers. (See jinja/filters.h.)
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "text/jinja/args.h"
#include "text/jinja/filters.h"
#include "text/jinja/number.h"
#include "text/jinja/ops.h"
#include "text/jinja/table.h"

namespace hexllm::jinja {
namespace {

Result<Value> Abs(Context& context, const Value& self, const CallArgs& args) {
  HX_RETURN_IF_ERROR(Bind(context, args, {"abs", {}, 0}).status());
  if (const auto* number = self.As<double>()) return Value(std::fabs(*number));
  const auto number = self.AsInt();
  if (number)
    return *number < 0 ? Negate(context, self) : Result<Value>(Value(*number));
  if (const auto* undefined = self.As<Undefined>())
    return context.Fail(*undefined->why);
  return context.Fail(
      fmt::format("bad operand type for abs(): '{}'", self.TypeName()));
}

// int(float), which refuses what is no number.
Result<Value> Truncated(Context& context, double number) {
  if (std::isinf(number))
    return context.Fail("cannot convert float infinity to integer");
  if (std::fabs(number) >= 0x1p63)
    return context.Unsupported("an int that needs more than 64 bits");
  return Value(static_cast<int64_t>(number));
}

Result<Value> Int(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"int", {"default", "base"}, 0}));
  const Value fallback = bound.Has(0) ? bound[0] : Value::Int(0);
  HX_ASSIGN_OR_RETURN(const int64_t base, bound.Int(context, 1, 10));
  if (const auto* undefined = self.As<Undefined>())
    return context.Fail(*undefined->why);
  if (const auto number = self.AsInt()) return Value(*number);
  if (const auto* number = self.As<double>())
    return std::isnan(*number) ? Result<Value>(fallback)
                               : Truncated(context, *number);
  if (!self.IsString()) return fallback;
  HX_RETURN_IF_ERROR(context.SpendScan(self.text().size() * 8));
  const ParsedInt parsed = ParseInt(self.text(), base);
  if (parsed.state == ParsedInt::State::kTooLarge)
    return context.Unsupported("an int that needs more than 64 bits");
  if (parsed.state == ParsedInt::State::kNumber) return Value(parsed.number);
  const auto number = ParseFloat(self.text());  // so that "42.23" gives 42
  if (!number || !std::isfinite(*number)) return fallback;
  return Truncated(context, *number);
}

Result<Value> Float(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"float", {"default"}, 0}));
  if (const auto* undefined = self.As<Undefined>())
    return context.Fail(*undefined->why);
  if (const auto number = self.AsFloat()) return Value(*number);
  if (self.IsString()) {
    HX_RETURN_IF_ERROR(context.SpendScan(self.text().size() * 8));
    if (const auto number = ParseFloat(self.text())) return Value(*number);
  }
  return bound.Has(0) ? bound[0] : Value(0.0);
}

// round(number, precision): to the even neighbour in the middle, exactly.
double RoundToEven(double number, int64_t precision) {
  if (!std::isfinite(number) || precision > 330) return number;
  const std::string digits =
      fmt::format("{:.{}f}", number, static_cast<int>(precision));
  double rounded = number;
  std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
  return rounded;
}

Result<Value> Round(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(
      const BoundArgs bound,
      Bind(context, args, {"round", {"precision", "method"}, 0}));
  HX_ASSIGN_OR_RETURN(const int64_t precision, bound.Int(context, 0, 0));
  HX_ASSIGN_OR_RETURN(const std::string method,
                      bound.Str(context, 1, "common"));
  if (method != "common" && method != "ceil" && method != "floor")
    return context.Fail("round() method must be common, ceil or floor");
  if (const auto* undefined = self.As<Undefined>())
    return context.Fail(*undefined->why);
  if (!self.IsNumber())
    return context.Fail(
        fmt::format("round() needs a number, not {}", self.TypeName()));
  if (precision < 0 || precision > 300)
    return context.Unsupported(
        "round() to a negative precision or to more than 300 digits");
  if (method == "common") {
    if (const auto number = self.AsInt()) return Value(*number);
    return Value(RoundToEven(*self.AsFloat(), precision));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = *self.AsFloat() * scale;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) /
               scale);
}

Result<Value> Sum(Context& context, const Value& self, const CallArgs& args) {
  HX_ASSIGN_OR_RETURN(const BoundArgs bound,
                      Bind(context, args, {"sum", {"attribute", "start"}, 0}));
  Value total = bound.Has(1) ? bound[1] : Value::Int(0);
  if (total.IsString())
    return context.Fail("sum() cannot sum strings; use '| join'");
  HX_ASSIGN_OR_RETURN(const auto iterator, Iterate(context, self));
  while (true) {
    HX_ASSIGN_OR_RETURN(const auto item, iterator->Next(context));
    if (!item) return total;
    HX_ASSIGN_OR_RETURN(const Value number,
                        GetByPath(context, *item, bound[0]));
    HX_ASSIGN_OR_RETURN(total,
                        Arithmetic(context, BinaryOp::kAdd, total, number));
  }
}

constexpr FilterRow kRows[] = {{"abs", &Abs},
                               {"float", &Float},
                               {"int", &Int},
                               {"round", &Round},
                               {"sum", &Sum}};

}  // namespace

NativeFunction FindNumberFilter(std::string_view name) {
  return FindFunction(kRows, name);
}

}  // namespace hexllm::jinja

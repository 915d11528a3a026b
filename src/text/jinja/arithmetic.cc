// Arithmetic of template values: numbers, and + * % on strings and sequences.
// (See jinja/ops.h.)
#include <fmt/format.h>

#include <cmath>

#include "text/jinja/format.h"
#include "text/jinja/markup.h"
#include "text/jinja/ops.h"

namespace hexllm::jinja {
namespace {

std::string_view Symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSubtract:
      return "-";
    case BinaryOp::kMultiply:
      return "*";
    case BinaryOp::kDivide:
      return "/";
    case BinaryOp::kFloorDivide:
      return "//";
    case BinaryOp::kModulo:
      return "%";
    case BinaryOp::kPower:
      return "** or pow()";
    case BinaryOp::kAnd:
      return "and";
    case BinaryOp::kOr:
      return "or";
  }
  return "";
}

Error TooLarge(Context& context) {
  return context.Unsupported("an int that needs more than 64 bits");
}

Result<int64_t> FloorDivide(Context& context, int64_t a, int64_t b) {
  if (b == 0) return context.Fail("integer division or modulo by zero");
  if (b == -1) {
    int64_t negated = 0;
    if (__builtin_sub_overflow(int64_t{0}, a, &negated))
      return TooLarge(context);
    return negated;
  }
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Result<int64_t> FloorModulo(Context& context, int64_t a, int64_t b) {
  if (b == 0) return context.Fail("integer division or modulo by zero");
  if (b == -1) return 0;
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b
                                                      : remainder;
}

Result<int64_t> IntegerPower(Context& context, int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result))
      return TooLarge(context);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base))
      return TooLarge(context);
  }
  return result;
}

Result<Value> OfInts(Context& context, BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOp::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOp::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOp::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOp::kFloorDivide: {
      HX_ASSIGN_OR_RETURN(result, FloorDivide(context, a, b));
      break;
    }
    case BinaryOp::kModulo: {
      HX_ASSIGN_OR_RETURN(result, FloorModulo(context, a, b));
      break;
    }
    default: {
      HX_ASSIGN_OR_RETURN(result, IntegerPower(context, a, b));
      break;
    }
  }
  if (overflow) return TooLarge(context);
  return Value(result);
}

Result<Value> OfFloats(Context& context, BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return Value(a + b);
    case BinaryOp::kSubtract:
      return Value(a - b);
    case BinaryOp::kMultiply:
      return Value(a * b);
    case BinaryOp::kPower:
      if (a == 0 && b < 0)
        return context.Fail("0.0 cannot be raised to a negative power");
      if (a < 0 && b != std::floor(b))
        return context.Unsupported("a complex number");
      if (std::isfinite(a) && std::isfinite(b) && std::isinf(std::pow(a, b)))
        return context.Fail("the result is too large");
      return Value(std::pow(a, b));
    default:
      break;
  }
  if (b == 0) return context.Fail("float division by zero");
  if (op == BinaryOp::kDivide) return Value(a / b);
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == BinaryOp::kModulo)
    return Value(remainder == 0 ? std::copysign(0.0, b) : remainder);
  return Value(std::round((a - remainder) / b));
}

Result<Value> OfNumbers(Context& context, BinaryOp op, const Value& a,
                        const Value& b) {
  const auto x = a.AsInt();
  const auto y = b.AsInt();
  const bool to_float =
      op == BinaryOp::kDivide || (op == BinaryOp::kPower && y && *y < 0);
  if (x && y && !to_float) return OfInts(context, op, *x, *y);
  return OfFloats(context, op, *a.AsFloat(), *b.AsFloat());
}

Result<Value> Concatenate(Context& context, const Value& a, const Value& b) {
  if (a.IsString()) return AddStrings(context, a, b);
  const Sequence& x = *a.sequence();
  const Sequence& y = *b.sequence();
  HX_RETURN_IF_ERROR(
      context.Spend(static_cast<int64_t>(x.items.size() + y.items.size())));
  std::vector<Value> items(x.items);
  items.insert(items.end(), y.items.begin(), y.items.end());
  return x.tuple ? context.NewTuple(std::move(items))
                 : context.NewList(std::move(items));
}

// "ab" * 3, [1] * 3
Result<Value> Repeat(Context& context, const Value& value, int64_t times) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  const size_t size =
      value.IsString() ? value.text().size() : value.sequence()->items.size();
  const size_t unit = value.IsString() ? 1 : sizeof(Value);
  size_t bytes = 0;
  if (__builtin_mul_overflow(size * unit, count, &bytes))
    return context.Fail("the result is too large");
  HX_RETURN_IF_ERROR(context.SpendBytes(bytes));
  HX_RETURN_IF_ERROR(context.SpendScan(bytes));
  if (value.IsString()) {
    std::string text;
    text.reserve(bytes);
    for (size_t i = 0; size > 0 && i < count; ++i) text += value.text();
    return context.NewString(std::move(text),
                             (*value.As<Value::StringPtr>())->markup);
  }
  const Sequence& sequence = *value.sequence();
  std::vector<Value> items;
  for (size_t i = 0; size > 0 && i < count; ++i)
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  return sequence.tuple ? context.NewTuple(std::move(items))
                        : context.NewList(std::move(items));
}

bool CanConcatenate(const Value& a, const Value& b) {
  if (a.IsString()) return b.IsString();
  return a.sequence() != nullptr && b.sequence() != nullptr &&
         a.sequence()->tuple == b.sequence()->tuple;
}

bool IsRepeatable(const Value& value) {
  return value.IsString() || value.sequence() != nullptr;
}

}  // namespace

Result<Value> Arithmetic(Context& context, BinaryOp op, const Value& a,
                         const Value& b) {
  if (op == BinaryOp::kModulo && a.IsString())
    return FormatPercent(context, a, b);
  for (const Value* operand : {&a, &b}) {
    if (const auto* undefined = operand->As<Undefined>())
      return context.Fail(*undefined->why);
  }
  if (a.IsNumber() && b.IsNumber()) return OfNumbers(context, op, a, b);
  if (op == BinaryOp::kAdd && CanConcatenate(a, b))
    return Concatenate(context, a, b);
  if (op == BinaryOp::kMultiply && IsRepeatable(a) && b.AsInt())
    return Repeat(context, a, *b.AsInt());
  if (op == BinaryOp::kMultiply && IsRepeatable(b) && a.AsInt())
    return Repeat(context, b, *a.AsInt());
  return context.Fail(
      fmt::format("unsupported operand types for {}: '{}' and '{}'", Symbol(op),
                  a.TypeName(), b.TypeName()));
}

Result<Value> Negate(Context& context, const Value& value) {
  if (const auto number = value.AsInt())
    return OfInts(context, BinaryOp::kSubtract, 0, *number);
  if (const auto* number = value.As<double>()) return Value(-*number);
  if (const auto* undefined = value.As<Undefined>())
    return context.Fail(*undefined->why);
  return context.Fail(
      fmt::format("bad operand type for unary -: '{}'", value.TypeName()));
}

Result<Value> Posate(Context& context, const Value& value) {
  if (const auto number = value.AsInt()) return Value(*number);
  if (value.As<double>() != nullptr) return value;
  if (const auto* undefined = value.As<Undefined>())
    return context.Fail(*undefined->why);
  return context.Fail(
      fmt::format("bad operand type for unary +: '{}'", value.TypeName()));
}

}  // namespace hexllm::jinja

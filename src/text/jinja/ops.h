// Python's operators on template values. Used by the evaluator, filters, tests
// and methods. Every function charges the context for its work and fails with
// kBadInput and the line for operands that Python refuses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/jinja/ast.h"
#include "text/jinja/context.h"

namespace hexllm::jinja {

// a op b for all operators but `and` and `or`, which do not evaluate both
// sides.
Result<Value> Arithmetic(Context& context, BinaryOp op, const Value& a,
                         const Value& b);
Result<Value> Negate(Context& context, const Value& value);
Result<Value> Posate(Context& context, const Value& value);

Result<bool> Compare(Context& context, CompareOp op, const Value& a,
                     const Value& b);
Result<bool> Equal(Context& context, const Value& a, const Value& b);
// a < b; fails for types without an order.
Result<bool> Less(Context& context, const Value& a, const Value& b);
// item in container.
Result<bool> Contains(Context& context, const Value& container,
                      const Value& item);

// object.name as jinja2 resolves it: Python's attributes and methods first,
// then items.
Result<Value> GetAttribute(Context& context, const Value& object,
                           std::string_view name);
// object[key]: items first, then attributes.
Result<Value> GetItem(Context& context, const Value& object, const Value& key);

// The parts of object[start:stop:step] that are given; None counts as not
// given.
struct SliceBounds {
  Value start;
  Value stop;
  Value step;
};
Result<Value> GetSlice(Context& context, const Value& object,
                       const SliceBounds& bounds);

// len(value).
Result<int64_t> Length(Context& context, const Value& value);

// The iterator over a value; undefined values have no items. kBadInput for
// values that cannot be iterated over.
Result<std::shared_ptr<Iterator>> Iterate(Context& context, const Value& value);
bool IsIterable(const Value& value);
// All items of an iterable value.
Result<std::vector<Value>> ToVector(Context& context, const Value& value);

Result<Value> Call(Context& context, const Value& callee, const CallArgs& args);

}  // namespace hexllm::jinja

// The methods of Python's str, dict, list and tuple that templates may call, by
// name. Used where attributes are looked up. Methods that change a list or dict
// are refused, as in jinja2's immutable sandbox.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/context.h"

namespace hexllm::jinja {

// The method `name` bound to `object`, or nothing when its type has none. For
// methods that the sandbox refuses an undefined value whose use fails.
Result<std::optional<Value>> FindMethod(Context& context, const Value& object,
                                        std::string_view name);

// One row of a table of methods.
struct MethodRow {
  std::string_view name;
  NativeFunction function;
};

// The methods of str, in two tables: those that transform or split, and those
// that search or ask.
const MethodRow* FindStringMethod(std::string_view name);
const MethodRow* FindStringQuery(std::string_view name);

}  // namespace hexllm::jinja

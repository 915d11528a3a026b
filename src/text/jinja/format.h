// Python's two ways of formatting text: "..." % values, and "...".format(...).
// Used by the operator %, the filter `format` and the method str.format.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/context.h"

namespace hexllm::jinja {

// format % values: a tuple gives the values in order, a dict those with names,
// anything else is the one value.
Result<Value> FormatPercent(Context& context, const Value& format,
                            const Value& values);

// format.format(*args).
Result<Value> FormatBraces(Context& context, std::string_view format,
                           const CallArgs& args);

}  // namespace hexllm::jinja

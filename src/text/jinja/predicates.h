// The tests of templates ("value is name(...)"), by name. Used by the parser,
// the evaluator and the filters that select. Source: jinja2 3.1 tests.
#pragma once

#include <string_view>

#include "text/jinja/context.h"

namespace hexllm::jinja {

using TestFunction = Result<bool> (*)(Context& context, const Value& value,
                                      const CallArgs& args);

// The test `name`, or null when there is none.
TestFunction FindTest(std::string_view name);

}  // namespace hexllm::jinja

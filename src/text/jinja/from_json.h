// JSON documents as template values. Used by ChatTemplate for messages, tools
// and variables.
#pragma once

#include "base/json.h"
#include "text/jinja/context.h"

namespace hexllm::jinja {

// The value of `json`. kBadInput for text that is not UTF-8 and for nesting
// beyond kMaxJsonDepth, kUnsupported for ints beyond 64 bits. The errors have
// no line: the template is not involved.
Result<Value> FromJson(Context& context, const Json& json);

}  // namespace hexllm::jinja

// The global functions of templates: range, dict, namespace, raise_exception,
// strftime_now, cycler, joiner. Used by ChatTemplate. Source: jinja2 3.1, and
// the functions that transformers adds.
#pragma once

#include "text/jinja/context.h"
#include "text/jinja/scope.h"

namespace hexllm::jinja {

// Defines the functions in `globals`. `strftime_now` exists only when the
// context knows the time.
Status DefineFunctions(Context& context, Scope& globals);

}  // namespace hexllm::jinja

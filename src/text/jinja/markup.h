// HTML-safe strings, as the filters `safe` and `escape` make them: text that
// joins them is escaped. Autoescape is off in chat templates, so this is all
// that is left of it. Source: markupsafe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/jinja/context.h"

namespace hexllm::jinja {

// `text` with & < > ' " as HTML entities.
std::string EscapeHtml(std::string_view text);

// a + b of two strings: where one of them is markup, the other is escaped and
// the sum is markup.
Result<Value> AddStrings(Context& context, const Value& a, const Value& b);

// `value` as markup: strings (or lists of strings) that come out of a method of
// a markup string.
Result<Value> AsMarkup(Context& context, const Value& value);

bool IsMarkup(const Value& value);

}  // namespace hexllm::jinja

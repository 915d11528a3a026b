// The filters of templates ("value | name(...)"), by name. Used by the parser
// (are there such?) and the evaluator. Source: jinja2 3.1 filters; `tojson` as
// transformers defines it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/jinja/context.h"

namespace hexllm::jinja {

// The filter `name`, called with the filtered value as `self`; null when there
// is none.
NativeFunction FindFilter(std::string_view name);

// True for filters of jinja2 that hexllm leaves out.
bool IsUnsupportedFilter(std::string_view name);

// One row of a table of filters.
struct FilterRow {
  std::string_view name;
  NativeFunction function;
};

// The parts of the table, each in the file of its name (jinja_filters_KIND.cc).
NativeFunction FindTextFilter(std::string_view name);
NativeFunction FindNumberFilter(std::string_view name);
NativeFunction FindSequenceFilter(std::string_view name);
NativeFunction FindSelectFilter(std::string_view name);

// Reads the attribute that `path` names ("a.b.0", an int, or None for the value
// itself), as the parameter `attribute` of many filters does.
Result<Value> GetByPath(Context& context, const Value& value,
                        const Value& path);

// Lower case of a string, any other value as it is: how filters compare without
// regard to case.
Result<Value> IgnoreCase(Context& context, const Value& value);

}  // namespace hexllm::jinja

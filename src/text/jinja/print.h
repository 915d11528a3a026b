// Text forms of template values: str(), repr() and JSON. Used by the evaluator
// and the filters.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/jinja/context.h"

namespace hexllm::jinja {

// Python's repr of a float: the shortest digits that read back the same, "1.0",
// "1e+16", "nan", "inf".
std::string FloatRepr(double number);

// str(value) and repr(value). kBadInput beyond the context's budgets,
// kUnsupported for objects whose text Python takes from memory addresses
// (functions, generators).
Result<std::string> ToText(Context& context, const Value& value);
Result<std::string> Repr(Context& context, const Value& value);
// repr of a str: quotes, with escapes for what is not printable.
std::string QuoteString(std::string_view text);

// The options of json.dumps that templates can set.
struct JsonStyle {
  std::optional<std::string> indent;  // one level; nothing: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ensure_ascii = false;
  bool sort_keys = false;
};

// json.dumps(value). kBadInput for values that JSON cannot hold.
Result<std::string> ToJson(Context& context, const Value& value,
                           const JsonStyle& style);

}  // namespace hexllm::jinja

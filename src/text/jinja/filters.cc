#include "text/jinja/filters.h"

#include <algorithm>
#include <iterator>

#include "text/jinja/ops.h"
#include "text/jinja/text.h"

namespace hexllm::jinja {

NativeFunction FindFilter(std::string_view name) {
  for (const auto find : {&FindTextFilter, &FindSequenceFilter,
                          &FindSelectFilter, &FindNumberFilter}) {
    if (const NativeFunction function = find(name)) return function;
  }
  return nullptr;
}

bool IsUnsupportedFilter(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "filesizeformat", "groupby", "pprint",   "random", "striptags",
      "urlencode",      "urlize",  "wordwrap", "xmlattr"};
  return std::find(std::begin(kNames), std::end(kNames), name) !=
         std::end(kNames);
}

Result<Value> GetByPath(Context& context, const Value& value,
                        const Value& path) {
  if (path.IsNone()) return value;
  if (!path.IsString()) return GetItem(context, value, path);
  Value current = value;
  std::string_view rest = path.text();
  while (true) {
    const size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    const bool is_index =
        !part.empty() && part.size() < 10 &&
        part.find_first_not_of("0123456789") == std::string::npos;
    HX_ASSIGN_OR_RETURN(current, GetItem(context, current,
                                         is_index ? Value::Int(std::stoll(part))
                                                  : Value::Text(part)));
    if (dot == std::string_view::npos) return current;
    rest.remove_prefix(dot + 1);
  }
}

Result<Value> IgnoreCase(Context& context, const Value& value) {
  if (!value.IsString()) return value;
  HX_RETURN_IF_ERROR(context.SpendScan(value.text().size() * 4));
  return context.NewString(LowerCase(value.text()));
}

}  // namespace hexllm::jinja

#include "text/jinja/sort.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "text/jinja/filters.h"
#include "text/jinja/ops.h"

namespace hexllm::jinja {
namespace {

using Key = std::vector<Value>;

// "a,b.c" -> the paths "a" and "b.c"
std::vector<Value> SplitPaths(const Value& attributes) {
  if (!attributes.IsString()) return {attributes};
  std::vector<Value> paths;
  std::string_view rest = attributes.text();
  while (true) {
    const size_t comma = rest.find(',');
    paths.push_back(Value::Text(std::string(rest.substr(0, comma))));
    if (comma == std::string_view::npos) return paths;
    rest.remove_prefix(comma + 1);
  }
}

Result<bool> LessKey(Context& context, const Key& a, const Key& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    HX_ASSIGN_OR_RETURN(const bool same, Equal(context, a[i], b[i]));
    if (!same) return Less(context, a[i], b[i]);
  }
  return false;
}

}  // namespace

Status SortByAttributes(Context& context, std::vector<Value>& items,
                        const Value& attributes, const SortOrder& order) {
  const std::vector<Value> paths = SplitPaths(attributes);
  HX_RETURN_IF_ERROR(context.SpendBytes(
      items.size() * (sizeof(Key) + paths.size() * sizeof(Value))));
  std::vector<Key> keys(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    for (const Value& path : paths) {
      HX_ASSIGN_OR_RETURN(Value key, GetByPath(context, items[i], path));
      if (!order.case_sensitive) {
        HX_ASSIGN_OR_RETURN(key, IgnoreCase(context, key));
      }
      keys[i].push_back(std::move(key));
    }
  }
  std::vector<size_t> places(items.size());
  std::iota(places.begin(), places.end(), size_t{0});
  Status failure;
  // After a failure all keys count as equal, which ends the sort soon.
  const auto less = [&](size_t i, size_t j) {
    if (!failure.ok()) return false;
    const auto result = order.reverse ? LessKey(context, keys[j], keys[i])
                                      : LessKey(context, keys[i], keys[j]);
    if (!result.ok()) failure = result.status();
    return result.ok() && *result;
  };
  std::stable_sort(places.begin(), places.end(), less);
  HX_RETURN_IF_ERROR(failure);
  std::vector<Value> sorted;
  sorted.reserve(items.size());
  for (const size_t place : places) sorted.push_back(std::move(items[place]));
  items = std::move(sorted);
  return OkStatus();
}

}  // namespace hexllm::jinja

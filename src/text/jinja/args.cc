#include "text/jinja/args.h"

#include <fmt/format.h>

#include <algorithm>

namespace hexllm::jinja {

Result<int64_t> BoundArgs::Int(Context& context, size_t i,
                               int64_t fallback) const {
  if (!Has(i)) return fallback;
  if (const auto number = (*this)[i].AsInt()) return *number;
  return context.Fail(
      fmt::format("'{}' object cannot be interpreted as an integer",
                  (*this)[i].TypeName()));
}

Result<std::string> BoundArgs::Str(Context& context, size_t i,
                                   std::string_view fallback) const {
  if (!Has(i)) return std::string(fallback);
  if ((*this)[i].IsString()) return (*this)[i].text();
  return context.Fail(fmt::format("argument {} must be str, not {}", i + 1,
                                  (*this)[i].TypeName()));
}

Result<BoundArgs> Bind(Context& context, const CallArgs& args,
                       const Signature& signature) {
  const size_t count = signature.parameters.size();
  if (args.positional.size() > count) {
    return context.Fail(
        fmt::format("{}() takes at most {} arguments, {} were given",
                    signature.name, count, args.positional.size()));
  }
  BoundArgs bound(count);
  for (size_t i = 0; i < args.positional.size(); ++i)
    bound.Set(i, args.positional[i]);
  for (const auto& [name, value] : args.named) {
    const auto it = std::find(signature.parameters.begin(),
                              signature.parameters.end(), name);
    if (it == signature.parameters.end()) {
      return context.Fail(
          fmt::format("{}() got an unexpected keyword argument '{}'",
                      signature.name, name));
    }
    const auto index = static_cast<size_t>(it - signature.parameters.begin());
    if (bound.Has(index))
      return context.Fail(fmt::format(
          "{}() got multiple values for argument '{}'", signature.name, name));
    bound.Set(index, value);
  }
  for (size_t i = 0; i < signature.required; ++i) {
    if (bound.Has(i)) continue;
    return context.Fail(fmt::format("{}() misses the argument '{}'",
                                    signature.name,
                                    signature.parameters.begin()[i]));
  }
  return bound;
}

}  // namespace hexllm::jinja

// Matches the arguments of a call to the parameters of a built-in function,
// filter, test or method.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/jinja/context.h"

namespace hexllm::jinja {

// The values of the parameters in their order; a parameter that was not given
// is absent.
class BoundArgs {
 public:
  explicit BoundArgs(size_t count) : values_(count) {}

  bool Has(size_t i) const { return values_[i].has_value(); }
  // The value of parameter `i`, or None when it was not given.
  const Value& operator[](size_t i) const {
    return values_[i].has_value() ? *values_[i] : none_;
  }
  void Set(size_t i, Value value) { values_[i] = std::move(value); }

  // Parameter `i` as the given type, or the default when absent. kBadInput for
  // other types.
  Result<int64_t> Int(Context& context, size_t i, int64_t fallback) const;
  Result<std::string> Str(Context& context, size_t i,
                          std::string_view fallback) const;
  bool Truthy(size_t i, bool fallback) const {
    return Has(i) ? (*this)[i].Truthy() : fallback;
  }

 private:
  std::vector<std::optional<Value>> values_;
  Value none_;
};

// What a callable takes: its name for messages, its parameters, and how many of
// them must be given.
struct Signature {
  std::string_view name;
  std::initializer_list<std::string_view> parameters;
  size_t required = 0;
};

// kBadInput for missing, unknown, repeated or too many arguments.
Result<BoundArgs> Bind(Context& context, const CallArgs& args,
                       const Signature& signature);

}  // namespace hexllm::jinja

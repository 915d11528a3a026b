// Iterators that filters and loops build on. (Iterate() of jinja/ops.h makes
// those over values.)
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "text/jinja/context.h"

namespace hexllm::jinja {

// Yields the items of a vector that it owns.
std::shared_ptr<Iterator> IterateVector(std::vector<Value> items);

// Yields what `function(context, item)` makes of the items of `source`, lazily.
// The function returns a Result<std::optional<Value>>; nothing skips the item.
template <typename Function>
class FilteredIterator final : public Iterator {
 public:
  FilteredIterator(std::shared_ptr<Iterator> source, Function function)
      : Iterator(source->depth() + 1),
        source_(std::move(source)),
        function_(std::move(function)) {}

  Result<std::optional<Value>> Next(Context& context) override {
    while (true) {
      HX_RETURN_IF_ERROR(context.Spend(1));
      HX_ASSIGN_OR_RETURN(std::optional<Value> item, source_->Next(context));
      if (!item) return item;
      HX_ASSIGN_OR_RETURN(std::optional<Value> out, function_(context, *item));
      if (out) return out;
    }
  }

 private:
  std::shared_ptr<Iterator> source_;
  Function function_;
};

template <typename Function>
std::shared_ptr<Iterator> MakeFiltered(std::shared_ptr<Iterator> source,
                                       Function function) {
  return std::make_shared<FilteredIterator<Function>>(std::move(source),
                                                      std::move(function));
}

}  // namespace hexllm::jinja

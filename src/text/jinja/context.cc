#include "text/jinja/context.h"

#include <fmt/format.h>

#include <algorithm>

namespace hexllm::jinja {

Error Context::Fail(std::string_view message) const {
  return Error{ErrorCode::kBadInput,
               fmt::format("chat template line {}: {}", line_, message)};
}

Error Context::Unsupported(std::string_view message) const {
  return Error{ErrorCode::kUnsupported,
               fmt::format("chat template line {}: {}", line_, message)};
}

Status Context::Spend(int64_t steps) {
  if (steps > limits_.max_steps - steps_) {
    return Fail(
        fmt::format("the template takes more than {} steps; it may not end",
                    limits_.max_steps));
  }
  steps_ += steps;
  return OkStatus();
}

Status Context::SpendBytes(size_t bytes) {
  if (bytes > static_cast<size_t>(limits_.max_bytes - bytes_)) {
    return Fail(fmt::format("the template uses more than {} bytes of memory",
                            limits_.max_bytes));
  }
  bytes_ += static_cast<int64_t>(bytes);
  return OkStatus();
}

Status Context::Enter() {
  if (depth_ >= limits_.max_depth) {
    return Fail(fmt::format("evaluation is nested deeper than {} levels",
                            limits_.max_depth));
  }
  ++depth_;
  return OkStatus();
}

Status Context::CheckDepth(int depth) const {
  if (depth <= limits_.max_value_depth) return OkStatus();
  return Fail(fmt::format("a value is nested deeper than {} levels",
                          limits_.max_value_depth));
}

Result<Value> Context::NewString(std::string text, bool markup) {
  HX_RETURN_IF_ERROR(SpendBytes(sizeof(String) + text.size()));
  return Value(std::make_shared<const String>(String{std::move(text), markup}));
}

Result<Value> Context::NewSequence(std::vector<Value> items, bool tuple) {
  HX_RETURN_IF_ERROR(
      SpendBytes(sizeof(Sequence) + items.size() * sizeof(Value)));
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.Depth());
  HX_RETURN_IF_ERROR(CheckDepth(depth + 1));
  return Value(std::make_shared<const Sequence>(
      Sequence{std::move(items), tuple, depth + 1}));
}

Result<Value> Context::NewList(std::vector<Value> items) {
  return NewSequence(std::move(items), false);
}

Result<Value> Context::NewTuple(std::vector<Value> items) {
  return NewSequence(std::move(items), true);
}

Result<Value> Context::NewDict(std::vector<Dict::Entry> entries) {
  HX_RETURN_IF_ERROR(
      SpendBytes(sizeof(Dict) +
                 entries.size() * (sizeof(Dict::Entry) + sizeof(uint32_t))));
  for (const Dict::Entry& entry : entries) {
    if (entry.key.IsString())
      HX_RETURN_IF_ERROR(SpendScan(entry.key.text().size() * 16));
    if (Dict::IsKey(entry.key)) continue;
    if (entry.key.dict() != nullptr ||
        (entry.key.sequence() != nullptr && !entry.key.sequence()->tuple)) {
      return Fail(fmt::format("unhashable type: '{}'", entry.key.TypeName()));
    }
    return Unsupported(
        fmt::format("a dict key of type '{}'", entry.key.TypeName()));
  }
  auto dict = std::make_shared<const Dict>(std::move(entries));
  HX_RETURN_IF_ERROR(CheckDepth(dict->depth()));
  return Value(std::move(dict));
}

Result<Value> Context::NewIterator(std::shared_ptr<Iterator> iterator) {
  HX_RETURN_IF_ERROR(
      SpendBytes(128));  // about the size of one with its captured arguments
  HX_RETURN_IF_ERROR(CheckDepth(iterator->depth()));
  return Value(std::move(iterator));
}

Result<Value> Context::NewCallable(Callable callable) {
  HX_RETURN_IF_ERROR(SpendBytes(sizeof(Callable)));
  HX_RETURN_IF_ERROR(CheckDepth(callable.self.Depth() + 1));
  return Value(std::make_shared<const Callable>(std::move(callable)));
}

}  // namespace hexllm::jinja

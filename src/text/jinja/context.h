// The state of one rendering: budgets, the line being executed (for errors),
// the objects made so far, and the constructors of values that cost memory.
// Used by the template interpreter alone. Not thread-safe: one per rendering.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/jinja/value.h"

namespace hexllm::jinja {

// What one rendering may use. Templates come with checkpoints and are hostile;
// real ones stay far below.
struct Limits {
  // Evaluated nodes, visited items, and 1 for each 64 bytes looked at.
  int64_t max_steps = 20'000'000;
  // All memory ever allocated for values, and so also the peak.
  int64_t max_bytes = int64_t{1} << 30;
  // The rendered text, and any part of it that is captured.
  size_t max_output_bytes = size_t{64} << 20;
  // Nested evaluations, macro calls included. They cost C++ stack: 600 levels
  // take up to 700 KiB.
  int max_depth = 600;
  // Lists in lists.
  int max_value_depth = 100;
};

class Context {
 public:
  Context(const Limits& limits, std::optional<std::tm> now)
      : limits_(limits), now_(now) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // The line of the template that is being executed; errors name it.
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

  // "chat template line N: MESSAGE" as kBadInput or kUnsupported.
  Error Fail(std::string_view message) const;
  Error Unsupported(std::string_view message) const;

  // kBadInput when the rendering has used more than it may.
  Status Spend(int64_t steps);
  // For a pass over `bytes` bytes of text.
  Status SpendScan(size_t bytes) {
    return Spend(1 + static_cast<int64_t>(bytes / 64));
  }
  Status SpendBytes(size_t bytes);

  // Brackets a nested evaluation: Enter fails beyond max_depth, Leave undoes a
  // successful Enter.
  Status Enter();
  void Leave() { --depth_; }

  // Values that cost memory. kBadInput beyond a budget or max_value_depth.
  Result<Value> NewString(std::string text, bool markup = false);
  Result<Value> NewList(std::vector<Value> items);
  Result<Value> NewTuple(std::vector<Value> items);
  // Also kUnsupported or kBadInput for keys that are no scalars.
  Result<Value> NewDict(std::vector<Dict::Entry> entries);
  Result<Value> NewIterator(std::shared_ptr<Iterator> iterator);
  Result<Value> NewCallable(Callable callable);

  // Takes ownership of a new object until the rendering ends.
  template <typename T>
  Result<T*> Own(std::unique_ptr<T> object) {
    HX_RETURN_IF_ERROR(SpendBytes(sizeof(T) + sizeof(void*)));
    T* raw = object.get();
    objects_.push_back(std::move(object));
    return raw;
  }

  const Limits& limits() const { return limits_; }
  const std::optional<std::tm>& now() const { return now_; }

 private:
  Result<Value> NewSequence(std::vector<Value> items, bool tuple);
  Status CheckDepth(int depth) const;

  Limits limits_;
  std::optional<std::tm> now_;
  int line_ = 1;
  int depth_ = 0;
  int64_t steps_ = 0;
  int64_t bytes_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
};

// Leaves the context when it goes out of scope; made after a successful Enter.
class DepthGuard {
 public:
  explicit DepthGuard(Context& context) : context_(context) {}
  ~DepthGuard() { context_.Leave(); }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Context& context_;
};

}  // namespace hexllm::jinja

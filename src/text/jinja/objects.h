// The objects of a rendering that act on the evaluator: macros and loops. Used
// by the evaluator.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "text/jinja/eval.h"

namespace hexllm::jinja {

// A macro, or the body of a call block as `caller`.
class Macro final : public Object {
 public:
  Macro(Evaluator& evaluator, const MacroDef& definition, Scope& closure)
      : evaluator_(evaluator), definition_(definition), closure_(closure) {}

  std::string_view TypeName() const override { return "macro"; }
  bool IsCallable() const override { return true; }
  Result<std::optional<Value>> GetAttribute(Context& context,
                                            std::string_view name) override;
  Result<Value> Call(Context& context, const CallArgs& args) override;

 private:
  Evaluator& evaluator_;
  const MacroDef& definition_;
  Scope& closure_;
};

// The variable `loop` of a for loop. It pulls the items: one ahead when the
// template asks for `last` or `nextitem`, all when it asks for the length of
// something without one.
class Loop final : public Object {
 public:
  Loop(Evaluator& evaluator, const Evaluator::LoopRun& run,
       std::shared_ptr<Iterator> source)
      : evaluator_(&evaluator), run_(run), source_(std::move(source)) {}

  std::string_view TypeName() const override { return "loop"; }
  bool IsCallable() const override { return true; }
  Result<std::optional<Value>> GetAttribute(Context& context,
                                            std::string_view name) override;
  // loop(children): runs a recursive loop one level deeper; its text.
  Result<Value> Call(Context& context, const CallArgs& args) override;

  // Tells the number of items when it is known without looking at them.
  void set_length(int64_t length) { length_ = length; }
  // Moves to the next item and returns it, or nothing at the end.
  Result<std::optional<Value>> Advance(Context& context);
  // Says that the loop has ended: it may be called and pulled no longer.
  void Finish();

 private:
  static Result<Value> Cycle(Context& context, const Value& self,
                             const CallArgs& args);
  static Result<Value> Changed(Context& context, const Value& self,
                               const CallArgs& args);
  Result<int64_t> LengthOf(Context& context);
  Status Peek(Context& context);
  Result<std::optional<Value>> PositionAttribute(Context& context,
                                                 std::string_view name);

  Evaluator* evaluator_;  // null when the loop has ended
  Evaluator::LoopRun run_;
  std::shared_ptr<Iterator> source_;
  int64_t index0_ = -1;
  std::optional<int64_t> length_;
  bool peeked_ = false;
  std::optional<Value>
      ahead_;  // when peeked_: the next item, or nothing at the end
  Value current_;
  Value previous_;
  std::optional<Value> last_changed_;
};

}  // namespace hexllm::jinja

#include "text/jinja/objects.h"

#include <fmt/format.h>

#include "text/jinja/iterate.h"
#include "text/jinja/ops.h"

namespace hexllm::jinja {

Result<std::optional<Value>> Macro::GetAttribute(Context& context,
                                                 std::string_view name) {
  if (name == "name") {
    if (definition_.name.empty()) return std::optional<Value>(Value());
    return std::optional<Value>(Value::Text(definition_.name));
  }
  if (name == "caller")
    return std::optional<Value>(Value::Bool(definition_.uses_caller));
  if (name == "catch_kwargs")
    return std::optional<Value>(Value::Bool(definition_.uses_kwargs));
  if (name == "catch_varargs")
    return std::optional<Value>(Value::Bool(definition_.uses_varargs));
  if (name != "arguments") return std::optional<Value>();
  std::vector<Value> names;
  for (const Parameter& parameter : definition_.parameters)
    names.push_back(Value::Text(parameter.name));
  HX_ASSIGN_OR_RETURN(Value tuple, context.NewTuple(std::move(names)));
  return std::optional<Value>(std::move(tuple));
}

Result<Value> Macro::Call(Context&, const CallArgs& args) {
  return evaluator_.CallMacro(definition_, closure_, args);
}

Result<std::optional<Value>> Loop::GetAttribute(Context& context,
                                                std::string_view name) {
  const auto method =
      [&](std::string_view static_name,
          NativeFunction function) -> Result<std::optional<Value>> {
    HX_ASSIGN_OR_RETURN(
        Value bound, context.NewCallable({static_name, function,
                                          Value(static_cast<Object*>(this))}));
    return std::optional<Value>(std::move(bound));
  };
  if (name == "cycle") return method("cycle", &Cycle);
  if (name == "changed") return method("changed", &Changed);
  if (name == "previtem") {
    if (index0_ <= 0)
      return std::optional<Value>(Value::Missing("there is no previous item"));
    return std::optional<Value>(previous_);
  }
  if (name == "nextitem") {
    HX_RETURN_IF_ERROR(Peek(context));
    return std::optional<Value>(
        ahead_ ? *ahead_ : Value::Missing("there is no next item"));
  }
  if (name == "last") {
    HX_RETURN_IF_ERROR(Peek(context));
    return std::optional<Value>(Value::Bool(!ahead_.has_value()));
  }
  return PositionAttribute(context, name);
}

Result<std::optional<Value>> Loop::PositionAttribute(Context& context,
                                                     std::string_view name) {
  if (name == "index0") return std::optional<Value>(Value::Int(index0_));
  if (name == "index") return std::optional<Value>(Value::Int(index0_ + 1));
  if (name == "first") return std::optional<Value>(Value::Bool(index0_ == 0));
  if (name == "depth0") return std::optional<Value>(Value::Int(run_.depth0));
  if (name == "depth") return std::optional<Value>(Value::Int(run_.depth0 + 1));
  if (name != "length" && name != "revindex" && name != "revindex0")
    return std::optional<Value>();
  HX_ASSIGN_OR_RETURN(const int64_t length, LengthOf(context));
  if (name == "length") return std::optional<Value>(Value::Int(length));
  return std::optional<Value>(
      Value::Int(length - index0_ - (name == "revindex" ? 0 : 1)));
}

Result<int64_t> Loop::LengthOf(Context& context) {
  if (length_) return *length_;
  HX_ASSIGN_OR_RETURN(std::vector<Value> rest,
                      ToVector(context, Value(source_)));
  length_ = static_cast<int64_t>(rest.size()) + index0_ + 1 + (ahead_ ? 1 : 0);
  source_ = IterateVector(std::move(rest));
  return *length_;
}

Status Loop::Peek(Context& context) {
  if (peeked_) return OkStatus();
  HX_ASSIGN_OR_RETURN(ahead_, source_->Next(context));
  peeked_ = true;
  return OkStatus();
}

Result<std::optional<Value>> Loop::Advance(Context& context) {
  HX_RETURN_IF_ERROR(Peek(context));
  peeked_ = false;
  std::optional<Value> item = std::move(ahead_);
  ahead_.reset();
  if (!item) return item;
  ++index0_;
  previous_ = std::move(current_);
  current_ = *item;
  return item;
}

void Loop::Finish() {
  evaluator_ = nullptr;
  source_ = IterateVector({});
}

Result<Value> Loop::Call(Context& context, const CallArgs& args) {
  if (!run_.statement.recursive)
    return context.Fail(
        "the loop must have the 'recursive' marker to be called recursively");
  if (evaluator_ == nullptr)
    return context.Fail("a loop that has ended cannot be called");
  if (args.positional.size() != 1 || !args.named.empty())
    return context.Fail("loop() takes one argument, the items");
  std::string text;
  HX_RETURN_IF_ERROR(evaluator_->RunLoop(
      {run_.statement, run_.scope, run_.depth0 + 1}, args.positional[0], text));
  return context.NewString(std::move(text));
}

Result<Value> Loop::Cycle(Context& context, const Value& self,
                          const CallArgs& args) {
  if (args.positional.empty() || !args.named.empty())
    return context.Fail("loop.cycle() needs the items to cycle through");
  const auto* loop = static_cast<Loop*>(self.object());
  return args
      .positional[static_cast<size_t>(loop->index0_) % args.positional.size()];
}

Result<Value> Loop::Changed(Context& context, const Value& self,
                            const CallArgs& args) {
  auto* loop = static_cast<Loop*>(self.object());
  HX_ASSIGN_OR_RETURN(Value values, context.NewTuple(args.positional));
  if (loop->last_changed_) {
    HX_ASSIGN_OR_RETURN(const bool same,
                        Equal(context, *loop->last_changed_, values));
    if (same) return Value::Bool(false);
  }
  loop->last_changed_ = std::move(values);
  return Value::Bool(true);
}

}  // namespace hexllm::jinja

// Loops, macros and call blocks. (See jinja/eval.h.)
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/eval.h"
#include "text/jinja/iterate.h"
#include "text/jinja/objects.h"
#include "text/jinja/ops.h"
#include "text/jinja/print.h"

namespace hexllm::jinja {
namespace {

// About what a scope with a few variables takes.
constexpr size_t kCapturedScopeBytes = 512;

}  // namespace

Status Evaluator::RunLoop(const LoopRun& run, const Value& iterable,
                          std::string& out) {
  const ForStatement& statement = run.statement;
  HX_ASSIGN_OR_RETURN(auto source, Iterate(context_, iterable));
  if (statement.condition != nullptr) {
    source = MakeFiltered(
        std::move(source),
        [this, &run](Context&,
                     const Value& item) -> Result<std::optional<Value>> {
          LocalScope scope(run.scope, captured_);
          HX_RETURN_IF_ERROR(Assign(run.statement.target, item, *scope));
          HX_ASSIGN_OR_RETURN(const Value keep,
                              Eval(*run.statement.condition, *scope));
          return keep.Truthy() ? std::optional<Value>(item) : std::nullopt;
        });
  }
  HX_ASSIGN_OR_RETURN(Loop* const loop, context_.Own(std::make_unique<Loop>(
                                            *this, run, std::move(source))));
  if (statement.condition == nullptr &&
      iterable.As<Value::IteratorPtr>() == nullptr) {
    HX_ASSIGN_OR_RETURN(const int64_t length, Length(context_, iterable));
    loop->set_length(length);
  }
  // jinja2 runs the else block when no iteration came to its end, so also after
  // a break in the first one.
  bool completed = false;
  Flow flow = Flow::kNormal;
  while (flow != Flow::kBreak) {
    context_.set_line(statement.target.line);
    HX_RETURN_IF_ERROR(context_.Spend(1));
    HX_ASSIGN_OR_RETURN(const auto item, loop->Advance(context_));
    if (!item) break;
    HX_ASSIGN_OR_RETURN(flow, RunIteration(run, *loop, *item, out));
    completed |= flow == Flow::kNormal;
  }
  loop->Finish();
  if (completed || !statement.otherwise) return OkStatus();
  LocalScope scope(run.scope, captured_);
  return Run(*statement.otherwise, *scope, out).status();
}

Result<Evaluator::Flow> Evaluator::RunIteration(const LoopRun& run, Loop& loop,
                                                const Value& item,
                                                std::string& out) {
  LocalScope scope(run.scope, captured_);
  HX_RETURN_IF_ERROR(Assign(run.statement.target, item, *scope));
  scope->Set("loop", Value(static_cast<Object*>(&loop)));
  return Run(run.statement.body, *scope, out);
}

Status Evaluator::RunMacro(const MacroDef& macro, Scope& scope) {
  HX_RETURN_IF_ERROR(context_.SpendBytes(kCapturedScopeBytes));
  scope.Capture();
  HX_ASSIGN_OR_RETURN(Macro* const object, context_.Own(std::make_unique<Macro>(
                                               *this, macro, scope)));
  scope.Set(macro.name, Value(static_cast<Object*>(object)));
  return OkStatus();
}

Status Evaluator::RunCallBlock(const CallBlockStatement& statement,
                               Scope& scope, std::string& out) {
  HX_RETURN_IF_ERROR(context_.SpendBytes(kCapturedScopeBytes));
  scope.Capture();
  HX_ASSIGN_OR_RETURN(
      Macro* const caller,
      context_.Own(std::make_unique<Macro>(*this, statement.caller, scope)));
  HX_ASSIGN_OR_RETURN(
      const Value value,
      EvalCallBlock(*statement.call, Value(static_cast<Object*>(caller)),
                    scope));
  HX_ASSIGN_OR_RETURN(const std::string text, ToText(context_, value));
  return Append(text, out);
}

Result<Value> Evaluator::CallMacro(const MacroDef& macro, Scope& closure,
                                   const CallArgs& args) {
  HX_RETURN_IF_ERROR(context_.Enter());
  const DepthGuard guard(context_);
  const int line = context_.line();
  LocalScope scope(closure, captured_);
  HX_RETURN_IF_ERROR(BindMacroArgs(macro, args, *scope));
  std::string out;
  HX_RETURN_IF_ERROR(Run(macro.body, *scope, out).status());
  context_.set_line(line);
  return context_.NewString(std::move(out));
}

Status Evaluator::BindMacroArgs(const MacroDef& macro, const CallArgs& args,
                                Scope& scope) {
  const size_t given =
      std::min(args.positional.size(), macro.parameters.size());
  HX_RETURN_IF_ERROR(context_.Spend(
      1 +
      static_cast<int64_t>(args.named.size() * macro.parameters.size() / 8)));
  HX_RETURN_IF_ERROR(BindSpecialArgs(macro, args, scope));
  std::vector<const Parameter*> missing;
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    if (i < given) {
      scope.Set(parameter.name, args.positional[i]);
      continue;
    }
    const auto is_named = [&parameter](const auto& argument) {
      return argument.first == parameter.name;
    };
    const auto named =
        std::find_if(args.named.begin(), args.named.end(), is_named);
    if (named != args.named.end()) {
      scope.Set(parameter.name, named->second);
      continue;
    }
    scope.Set(parameter.name,
              Value::Missing(fmt::format("parameter '{}' was not provided",
                                         parameter.name)));
    if (parameter.fallback != nullptr) missing.push_back(&parameter);
  }
  for (const Parameter* parameter :
       missing) {  // defaults see the arguments and the defaults before them
    HX_ASSIGN_OR_RETURN(Value value, Eval(*parameter->fallback, scope));
    scope.Set(parameter->name, std::move(value));
  }
  return OkStatus();
}

// Handles what is left of the arguments after the parameters: caller, kwargs
// and varargs.
Status Evaluator::BindSpecialArgs(const MacroDef& macro, const CallArgs& args,
                                  Scope& scope) {
  const size_t count = macro.parameters.size();
  std::vector<Dict::Entry> kwargs;
  Value caller = Value::Missing("No caller defined");
  for (const auto& [name, value] : args.named) {
    const auto is_free = [&name = name](const Parameter& parameter) {
      return parameter.name == name;
    };
    const auto begin =
        macro.parameters.begin() +
        static_cast<ptrdiff_t>(std::min(args.positional.size(), count));
    if (std::find_if(begin, macro.parameters.end(), is_free) !=
        macro.parameters.end())
      continue;
    if (name == "caller" && macro.uses_caller) {
      caller = value;
    } else if (macro.uses_kwargs) {
      kwargs.push_back({Value::Text(name), value});
    } else if (name == "caller") {
      return context_.Fail(fmt::format(
          "macro '{}' was invoked with a caller, which it does not use",
          macro.name));
    } else {
      return context_.Fail(fmt::format(
          "macro '{}' takes no keyword argument '{}'", macro.name, name));
    }
  }
  if (args.positional.size() > count && !macro.uses_varargs) {
    return context_.Fail(fmt::format(
        "macro '{}' takes not more than {} argument(s)", macro.name, count));
  }
  if (macro.uses_caller) scope.Set("caller", std::move(caller));
  if (macro.uses_kwargs) {
    HX_ASSIGN_OR_RETURN(Value dict, context_.NewDict(std::move(kwargs)));
    scope.Set("kwargs", std::move(dict));
  }
  if (!macro.uses_varargs) return OkStatus();
  const size_t used = std::min(args.positional.size(), count);
  HX_ASSIGN_OR_RETURN(
      Value rest,
      context_.NewTuple({args.positional.begin() + static_cast<ptrdiff_t>(used),
                         args.positional.end()}));
  scope.Set("varargs", std::move(rest));
  return OkStatus();
}

}  // namespace hexllm::jinja

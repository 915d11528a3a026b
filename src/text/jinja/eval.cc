// Statements. (Expressions: jinja/eval_expr.cc; loops and macros:
// jinja/eval_block.cc.)
#include "text/jinja/eval.h"

#include <fmt/format.h>

#include "text/jinja/objects.h"
#include "text/jinja/ops.h"
#include "text/jinja/overloaded.h"
#include "text/jinja/print.h"

namespace hexllm::jinja {
namespace {

// For statements after which execution simply goes on.
Result<Evaluator::Flow> GoOn(Status status) {
  if (!status.ok()) return std::move(status).error();
  return Evaluator::Flow::kNormal;
}

}  // namespace

Result<std::string> Evaluator::Render(const Block& block) {
  LocalScope top(globals_, captured_);
  std::string out;
  HX_RETURN_IF_ERROR(Run(block, *top, out).status());
  return out;
}

Status Evaluator::Append(std::string_view text, std::string& out) {
  HX_RETURN_IF_ERROR(context_.SpendBytes(text.size()));
  HX_RETURN_IF_ERROR(context_.SpendScan(text.size()));
  const size_t limit = context_.limits().max_output_bytes;
  if (text.size() > limit - out.size())
    return context_.Fail(
        fmt::format("the output is longer than {} bytes", limit));
  out += text;
  return OkStatus();
}

Result<Evaluator::Flow> Evaluator::Run(const Body& body, Scope& scope,
                                       std::string& out) {
  HX_RETURN_IF_ERROR(context_.Enter());
  const DepthGuard guard(context_);
  for (const Statement& statement : body) {
    context_.set_line(statement.line);
    HX_RETURN_IF_ERROR(context_.Spend(1));
    HX_ASSIGN_OR_RETURN(const Flow flow, RunOne(statement, scope, out));
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Result<Evaluator::Flow> Evaluator::Run(const Block& block, Scope& scope,
                                       std::string& out) {
  for (const auto& [name, undefined] : block.unset) scope.Set(name, undefined);
  return Run(block.statements, scope, out);
}

Result<Evaluator::Flow> Evaluator::RunOne(const Statement& statement,
                                          Scope& scope, std::string& out) {
  return std::visit(
      Overloaded{
          [&](const DataStatement& s) { return GoOn(Append(s.text, out)); },
          [&](const PrintStatement& s) {
            return GoOn(RunPrint(s, scope, out));
          },
          [&](const IfStatement& s) { return RunIf(s, scope, out); },
          [&](const ForStatement& s) -> Result<Flow> {
            HX_ASSIGN_OR_RETURN(const Value iterable, Eval(*s.iterable, scope));
            return GoOn(RunLoop({s, scope, 0}, iterable, out));
          },
          [&](const SetStatement& s) -> Result<Flow> {
            HX_ASSIGN_OR_RETURN(const Value value, Eval(*s.value, scope));
            return GoOn(Assign(s.target, value, scope));
          },
          [&](const SetBlockStatement& s) -> Result<Flow> {
            Flow flow = Flow::kNormal;
            HX_RETURN_IF_ERROR(RunSetBlock(s, scope, flow));
            return flow;
          },
          [&](const MacroStatement& s) {
            return GoOn(RunMacro(s.macro, scope));
          },
          [&](const CallBlockStatement& s) {
            return GoOn(RunCallBlock(s, scope, out));
          },
          [&](const FilterBlockStatement& s) {
            return RunFilterBlock(s, scope, out);
          },
          [&](const WithStatement& s) { return RunWith(s, scope, out); },
          [&](const GenerationStatement& s) {
            LocalScope inner(scope, captured_);
            return Run(s.body, *inner, out);
          },
          [](const BreakStatement&) { return Result<Flow>(Flow::kBreak); },
          [](const ContinueStatement&) {
            return Result<Flow>(Flow::kContinue);
          },
      },
      statement.node);
}

Status Evaluator::RunPrint(const PrintStatement& statement, Scope& scope,
                           std::string& out) {
  HX_ASSIGN_OR_RETURN(const Value value, Eval(*statement.value, scope));
  if (value.IsString()) return Append(value.text(), out);
  HX_ASSIGN_OR_RETURN(const std::string text, ToText(context_, value));
  return Append(text, out);
}

Result<Evaluator::Flow> Evaluator::RunIf(const IfStatement& statement,
                                         Scope& scope, std::string& out) {
  for (const auto& [condition, body] : statement.branches) {
    HX_ASSIGN_OR_RETURN(const Value value, Eval(*condition, scope));
    if (value.Truthy()) return Run(body, scope, out);
  }
  if (statement.otherwise) return Run(*statement.otherwise, scope, out);
  return Flow::kNormal;
}

Status Evaluator::RunSetBlock(const SetBlockStatement& statement, Scope& scope,
                              Flow& flow) {
  LocalScope inner(scope, captured_);
  std::string text;
  HX_ASSIGN_OR_RETURN(flow, Run(statement.body, *inner, text));
  if (flow != Flow::kNormal)
    return OkStatus();  // a break inside of the block drops its text
  HX_ASSIGN_OR_RETURN(Value value, context_.NewString(std::move(text)));
  if (statement.filter != nullptr) {
    HX_ASSIGN_OR_RETURN(value,
                        EvalFilterChain(*statement.filter, value, *inner));
  }
  return Assign(statement.target, value, scope);
}

Result<Evaluator::Flow> Evaluator::RunFilterBlock(
    const FilterBlockStatement& statement, Scope& scope, std::string& out) {
  LocalScope inner(scope, captured_);
  std::string text;
  HX_ASSIGN_OR_RETURN(const Flow flow, Run(statement.body, *inner, text));
  if (flow != Flow::kNormal) return flow;
  HX_ASSIGN_OR_RETURN(const Value captured,
                      context_.NewString(std::move(text)));
  HX_ASSIGN_OR_RETURN(const Value value,
                      EvalFilterChain(*statement.filter, captured, *inner));
  HX_ASSIGN_OR_RETURN(const std::string filtered, ToText(context_, value));
  return GoOn(Append(filtered, out));
}

Result<Evaluator::Flow> Evaluator::RunWith(const WithStatement& statement,
                                           Scope& scope, std::string& out) {
  LocalScope inner(scope, captured_);
  for (const auto& [target, expr] : statement.bindings) {
    HX_ASSIGN_OR_RETURN(const Value value, Eval(*expr, scope));
    HX_RETURN_IF_ERROR(Assign(target, value, *inner));
  }
  return Run(statement.body, *inner, out);
}

Status Evaluator::Assign(const Target& target, const Value& value,
                         Scope& scope) {
  context_.set_line(target.line);
  if (!target.items.empty()) {
    HX_ASSIGN_OR_RETURN(const std::vector<Value> values,
                        ToVector(context_, value));
    const size_t expected = target.items.size();
    if (values.size() < expected) {
      return context_.Fail(
          fmt::format("not enough values to unpack (expected {}, got {})",
                      expected, values.size()));
    }
    if (values.size() > expected)
      return context_.Fail(
          fmt::format("too many values to unpack (expected {})", expected));
    for (size_t i = 0; i < expected; ++i)
      HX_RETURN_IF_ERROR(Assign(target.items[i], values[i], scope));
    return OkStatus();
  }
  if (target.attribute.empty()) {
    scope.Set(target.name, value);
    return OkStatus();
  }
  const Value* object = scope.Find(target.name);
  auto* space =
      object != nullptr ? dynamic_cast<Namespace*>(object->object()) : nullptr;
  if (space == nullptr)
    return context_.Fail("cannot assign attribute on non-namespace object");
  return space->Set(context_, target.attribute, value);
}

}  // namespace hexllm::jinja

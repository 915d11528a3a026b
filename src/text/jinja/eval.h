// Runs the syntax tree of a template: statements write text, expressions give
// values. Used by ChatTemplate. Semantics: jinja2 3.1 with autoescape off, in
// its immutable sandbox.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/jinja/ast.h"
#include "text/jinja/context.h"
#include "text/jinja/scope.h"

namespace hexllm::jinja {

class Loop;

// One rendering. The tree, the context and `globals` must outlive it.
class Evaluator {
 public:
  Evaluator(Context& context, Scope& globals)
      : context_(context), globals_(globals) {}
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // The text of the template. Errors as documented at ChatTemplate::Render.
  Result<std::string> Render(const Block& block);

  // Calls a macro that was defined in `closure`; its text.
  Result<Value> CallMacro(const MacroDef& macro, Scope& closure,
                          const CallArgs& args);

  // Runs a for loop over `iterable` at nesting level `depth0` of a recursive
  // loop and appends to `out`.
  struct LoopRun {
    const ForStatement& statement;
    Scope& scope;
    int depth0 = 0;
  };
  enum class Flow { kNormal, kBreak, kContinue };
  Status RunLoop(const LoopRun& run, const Value& iterable, std::string& out);

 private:
  Result<Flow> Run(const Body& body, Scope& scope, std::string& out);
  // The same for a block, in the new scope made for it.
  Result<Flow> Run(const Block& block, Scope& scope, std::string& out);
  Result<Flow> RunOne(const Statement& statement, Scope& scope,
                      std::string& out);
  Result<Flow> RunIf(const IfStatement& statement, Scope& scope,
                     std::string& out);
  Status RunPrint(const PrintStatement& statement, Scope& scope,
                  std::string& out);
  Status RunSetBlock(const SetBlockStatement& statement, Scope& scope,
                     Flow& flow);
  Status RunMacro(const MacroDef& macro, Scope& scope);
  Status RunCallBlock(const CallBlockStatement& statement, Scope& scope,
                      std::string& out);
  Result<Flow> RunFilterBlock(const FilterBlockStatement& statement,
                              Scope& scope, std::string& out);
  Result<Flow> RunWith(const WithStatement& statement, Scope& scope,
                       std::string& out);
  Result<Flow> RunIteration(const LoopRun& run, Loop& loop, const Value& item,
                            std::string& out);
  Status BindMacroArgs(const MacroDef& macro, const CallArgs& args,
                       Scope& scope);
  Status BindSpecialArgs(const MacroDef& macro, const CallArgs& args,
                         Scope& scope);
  Status Assign(const Target& target, const Value& value, Scope& scope);
  Status Append(std::string_view text, std::string& out);

  Result<Value> Eval(const Expr& expr, Scope& scope);
  Result<Value> EvalNode(const ConstantExpr& node, Scope& scope);
  Result<Value> EvalNode(const NameExpr& node, Scope& scope);
  Result<Value> EvalNode(const AttributeExpr& node, Scope& scope);
  Result<Value> EvalNode(const ItemExpr& node, Scope& scope);
  Result<Value> EvalNode(const SliceExpr& node, Scope& scope);
  Result<Value> EvalNode(const CallExpr& node, Scope& scope);
  Result<Value> EvalNode(const FilterExpr& node, Scope& scope);
  Result<Value> EvalNode(const TestExpr& node, Scope& scope);
  Result<Value> EvalNode(const UnaryExpr& node, Scope& scope);
  Result<Value> EvalNode(const BinaryExpr& node, Scope& scope);
  Result<Value> EvalNode(const CompareExpr& node, Scope& scope);
  Result<Value> EvalNode(const ConcatExpr& node, Scope& scope);
  Result<Value> EvalNode(const ConditionalExpr& node, Scope& scope);
  Result<Value> EvalNode(const SequenceExpr& node, Scope& scope);
  Result<Value> EvalNode(const DictExpr& node, Scope& scope);
  Result<CallArgs> EvalArgs(const CallSyntax& syntax, Scope& scope);
  Status EvalSpreads(const CallSyntax& syntax, Scope& scope, CallArgs& args);
  // The call of a call block: `node` with the extra argument `caller`.
  Result<Value> EvalCallBlock(const Expr& call, const Value& caller,
                              Scope& scope);
  // A chain of filters whose innermost input is `text`.
  Result<Value> EvalFilterChain(const Expr& filter, const Value& text,
                                Scope& scope);
  Result<Value> ApplyFilter(const FilterExpr& filter, const Value& input,
                            Scope& scope);

  Context& context_;
  Scope& globals_;
  CapturedScopes captured_;
};

}  // namespace hexllm::jinja

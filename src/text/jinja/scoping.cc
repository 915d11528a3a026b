#include "text/jinja/scoping.h"

#include <fmt/format.h>

#include <set>

#include "text/jinja/ast_walk.h"

namespace hexllm::jinja {
namespace {

// The variables of one block while it is looked at, and those around it.
class BlockNames {
 public:
  BlockNames(Block& block, const BlockNames* outer)
      : block_(block), outer_(outer) {}

  void Declare(const std::string& name) { known_.insert(name); }

  void Load(const std::string& name) {
    if (!IsKnown(name)) known_.insert(name);
  }

  // A variable set under a condition keeps the caller's value otherwise.
  enum class Certainty { kAlways, kConditional };
  void Store(const std::string& name, Certainty certainty) {
    const bool known_outside = outer_ != nullptr && outer_->IsKnown(name);
    if (!known_.insert(name).second || known_outside) return;
    if (certainty == Certainty::kConditional) return;
    block_.unset.emplace_back(
        name, Value::Missing(fmt::format("'{}' is undefined", name)));
  }

 private:
  bool IsKnown(const std::string& name) const {
    for (const BlockNames* names = this; names != nullptr;
         names = names->outer_) {
      if (names->known_.contains(name)) return true;
    }
    return false;
  }

  Block& block_;
  const BlockNames* outer_;
  std::set<std::string> known_;
};

using Certainty = BlockNames::Certainty;

void LoadAll(const ExprPtr& expr, BlockNames& names);

void LoadAll(const Expr& expr, BlockNames& names) {
  if (const auto* name = std::get_if<NameExpr>(&expr.node)) {
    names.Load(name->name);
  }
  ForEachOperand(expr, [&](const Expr& operand) { LoadAll(operand, names); });
}

void LoadAll(const ExprPtr& expr, BlockNames& names) {
  if (expr != nullptr) LoadAll(*expr, names);
}

void StoreTarget(const Target& target, Certainty certainty, BlockNames& names) {
  for (const Target& item : target.items) StoreTarget(item, certainty, names);
  if (target.name.empty()) return;
  if (target.attribute.empty()) {
    names.Store(target.name, certainty);
  } else {
    names.Load(target.name);
  }
}

void DeclareTarget(const Target& target, BlockNames& names) {
  for (const Target& item : target.items) DeclareTarget(item, names);
  if (!target.name.empty()) names.Declare(target.name);
}

// First walk over a block: which names it reads and sets itself, in order.
class NameCollector {
 public:
  explicit NameCollector(BlockNames& names) : names_(names) {}

  void Visit(const Body& body, Certainty certainty) {
    certainty_ = certainty;
    for (const Statement& statement : body) {
      std::visit([this](const auto& node) { VisitNode(node); }, statement.node);
    }
  }

 private:
  void VisitNode(const DataStatement&) {}
  void VisitNode(const PrintStatement& node) { LoadAll(node.value, names_); }
  void VisitNode(const IfStatement& node) {
    const Certainty outer = certainty_;
    for (const auto& [condition, body] : node.branches) {
      LoadAll(condition, names_);
      Visit(body, Certainty::kConditional);
    }
    if (node.otherwise) Visit(*node.otherwise, Certainty::kConditional);
    certainty_ = outer;
  }
  void VisitNode(const ForStatement& node) { LoadAll(node.iterable, names_); }
  void VisitNode(const SetStatement& node) {
    LoadAll(node.value, names_);
    StoreTarget(node.target, certainty_, names_);
  }
  void VisitNode(const SetBlockStatement& node) {
    StoreTarget(node.target, certainty_, names_);
  }
  void VisitNode(const MacroStatement& node) {
    names_.Store(node.macro.name, certainty_);
  }
  void VisitNode(const CallBlockStatement& node) { LoadAll(node.call, names_); }
  void VisitNode(const FilterBlockStatement& node) {
    LoadAll(node.filter, names_);
  }
  void VisitNode(const WithStatement& node) {
    for (const auto& [target, value] : node.bindings) LoadAll(value, names_);
  }
  void VisitNode(const GenerationStatement&) {}
  void VisitNode(const BreakStatement&) {}
  void VisitNode(const ContinueStatement&) {}

  BlockNames& names_;
  Certainty certainty_ = Certainty::kAlways;
};

// Second walk: the blocks inside, which see all names of those around them.
class BlockVisitor {
 public:
  explicit BlockVisitor(const BlockNames* names) : names_(names) {}

  void Visit(Body& body) {
    for (Statement& statement : body) {
      std::visit([this](auto& node) { VisitNode(node); }, statement.node);
    }
  }

  template <typename Declare>
  void VisitBlock(Block& block, Declare declare) {
    BlockNames inner(block, names_);
    declare(inner);
    NameCollector(inner).Visit(block.statements, Certainty::kAlways);
    BlockVisitor(&inner).Visit(block.statements);
  }
  void VisitBlock(Block& block) {
    VisitBlock(block, [](BlockNames&) {});
  }

 private:
  template <typename Node>
  void VisitNode(Node&) {}  // statements without blocks
  void VisitNode(IfStatement& node) {
    for (auto& [condition, body] : node.branches) Visit(body);
    if (node.otherwise) Visit(*node.otherwise);
  }
  void VisitNode(ForStatement& node) {
    VisitBlock(node.body, [&node](BlockNames& names) {
      names.Declare("loop");
      DeclareTarget(node.target, names);
    });
    if (node.otherwise) VisitBlock(*node.otherwise);
  }
  void VisitNode(SetBlockStatement& node) { VisitBlock(node.body); }
  void VisitNode(MacroStatement& node) { VisitMacro(node.macro); }
  void VisitNode(CallBlockStatement& node) { VisitMacro(node.caller); }
  void VisitNode(FilterBlockStatement& node) { VisitBlock(node.body); }
  void VisitNode(GenerationStatement& node) { VisitBlock(node.body); }
  void VisitNode(WithStatement& node) {
    VisitBlock(node.body, [&node](BlockNames& names) {
      for (const auto& [target, value] : node.bindings) {
        DeclareTarget(target, names);
      }
    });
  }

  void VisitMacro(MacroDef& macro) {
    VisitBlock(macro.body, [&macro](BlockNames& names) {
      for (const Parameter& parameter : macro.parameters) {
        names.Declare(parameter.name);
      }
      for (const Parameter& parameter : macro.parameters) {
        LoadAll(parameter.fallback, names);
      }
      if (macro.uses_caller) names.Declare("caller");
      if (macro.uses_kwargs) names.Declare("kwargs");
      if (macro.uses_varargs) names.Declare("varargs");
    });
  }

  const BlockNames* names_;
};

}  // namespace

void FindUnsetVariables(Block& block) {
  BlockVisitor(nullptr).VisitBlock(block);
}

}  // namespace hexllm::jinja

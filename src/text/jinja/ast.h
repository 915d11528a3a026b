// The syntax tree of a template. Made by the parser (jinja/parser.h), walked by
// the evaluator (jinja/eval.h). Immutable after parsing, so one tree may be
// rendered by many threads at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/value.h"

namespace hexllm::jinja {

struct Expr;
struct Statement;
using ExprPtr = std::unique_ptr<Expr>;
using Body = std::vector<Statement>;

// Statements with a scope of their own.
struct Block {
  Body statements;
  // The variables that the block sets before it reads them: they are undefined
  // from its beginning, whatever variables of these names the caller passes in.
  // (jinja/scoping.h)
  std::vector<std::pair<std::string, Value>> unset;
};

struct NamedExpr {
  std::string name;
  ExprPtr value;
};

// (a, b, *c, d=e, **f)
struct CallSyntax {
  std::vector<ExprPtr> positional;
  std::vector<NamedExpr> named;
  ExprPtr spread;        // *c or null
  ExprPtr named_spread;  // **f or null
};

enum class UnaryOp { kNot, kNegative, kPositive };
enum class BinaryOp {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kAnd,
  kOr
};
enum class CompareOp {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn
};

struct ConstantExpr {
  Value value;
};
struct NameExpr {
  std::string name;
};
struct AttributeExpr {  // object.name
  ExprPtr object;
  std::string name;
};
struct ItemExpr {  // object[key]
  ExprPtr object;
  ExprPtr key;
};
struct SliceExpr {  // object[start:stop:step], each part may be null
  ExprPtr object;
  ExprPtr start;
  ExprPtr stop;
  ExprPtr step;
};
struct CallExpr {
  ExprPtr callee;
  CallSyntax args;
};
struct FilterExpr {
  ExprPtr input;  // null in filter blocks: the text of the block
  std::string name;
  CallSyntax args;
};
struct TestExpr {
  ExprPtr input;
  std::string name;
  CallSyntax args;
};
struct UnaryExpr {
  UnaryOp op;
  ExprPtr operand;
};
struct BinaryExpr {
  BinaryOp op;
  ExprPtr left;
  ExprPtr right;
};
struct CompareExpr {  // first op operand op operand ..., chained as in Python
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};
struct ConcatExpr {  // a ~ b ~ c
  std::vector<ExprPtr> parts;
};
struct ConditionalExpr {  // then if condition else otherwise
  ExprPtr condition;
  ExprPtr then;
  ExprPtr otherwise;  // or null
};
struct SequenceExpr {  // [a, b] or (a, b)
  std::vector<ExprPtr> items;
  bool tuple = false;
};
struct DictExpr {
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};

struct Expr {
  int line = 1;
  int height = 1;  // of the tree below, bounded by the parser
  std::variant<ConstantExpr, NameExpr, AttributeExpr, ItemExpr, SliceExpr,
               CallExpr, FilterExpr, TestExpr, UnaryExpr, BinaryExpr,
               CompareExpr, ConcatExpr, ConditionalExpr, SequenceExpr, DictExpr>
      node;
};

// What `set` and `for` assign to: a name, an attribute of a namespace, or
// several targets (a, b).
struct Target {
  std::string name;           // empty for a tuple
  std::string attribute;      // of the namespace `name`, else empty
  std::vector<Target> items;  // of a tuple
  int line = 1;
};

struct Parameter {
  std::string name;
  ExprPtr fallback;  // or null
};

// The definition of a macro or of the body of a call block.
struct MacroDef {
  std::string name;  // empty for a call block
  std::vector<Parameter> parameters;
  Block body;
  // Special variables that the body mentions; a call may pass them only then.
  bool uses_caller = false;
  bool uses_kwargs = false;
  bool uses_varargs = false;
};

struct DataStatement {
  std::string text;
};
struct PrintStatement {
  ExprPtr value;
};
struct IfStatement {
  std::vector<std::pair<ExprPtr, Body>> branches;  // if, elif, ...
  std::optional<Body> otherwise;
};
struct ForStatement {
  Target target;
  ExprPtr iterable;
  ExprPtr condition;  // or null
  Block body;
  std::optional<Block> otherwise;
  bool recursive = false;
};
struct SetStatement {
  Target target;
  ExprPtr value;
};
struct SetBlockStatement {
  Target target;
  ExprPtr filter;  // a chain whose innermost input is null, or null
  Block body;
};
struct MacroStatement {
  MacroDef macro;
};
struct CallBlockStatement {
  ExprPtr call;
  MacroDef caller;
};
struct FilterBlockStatement {
  ExprPtr filter;
  Block body;
};
struct WithStatement {
  std::vector<std::pair<Target, ExprPtr>> bindings;
  Block body;
};
struct GenerationStatement {  // {% generation %}: marks the assistant's text;
                              // renders as its body
  Block body;
};
struct BreakStatement {};
struct ContinueStatement {};

struct Statement {
  int line = 1;
  std::variant<DataStatement, PrintStatement, IfStatement, ForStatement,
               SetStatement, SetBlockStatement, MacroStatement,
               CallBlockStatement, FilterBlockStatement, WithStatement,
               GenerationStatement, BreakStatement, ContinueStatement>
      node;
};

}  // namespace hexllm::jinja

#include "text/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "text/jinja/expr_parser.h"
#include "text/jinja/scoping.h"
#include "text/jinja/token_stream.h"

namespace hexllm::jinja {
namespace {

using EndTags = std::initializer_list<std::string_view>;

// Tags that jinja2 knows and we do not.
constexpr std::string_view kUnsupportedTags[] = {
    "block", "extends", "include", "import", "from", "autoescape"};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens)
      : stream_(std::move(tokens)), exprs_(stream_) {}

  Result<Block> ParseAll() {
    HX_ASSIGN_OR_RETURN(Body body, ParseBody({}));
    return Block{std::move(body), {}};
  }

 private:
  // Statements up to one of `end_tags`, whose name is then the current token;
  // without end tags up to the end.
  Result<Body> ParseBody(EndTags end_tags) {
    HX_RETURN_IF_ERROR(exprs_.Enter());
    Body body;
    auto status = ParseBodyInto(body, end_tags);
    exprs_.Leave();
    if (!status.ok()) return std::move(status).error();
    return body;
  }

  Status ParseBodyInto(Body& body, EndTags end_tags) {
    while (!stream_.At(TokenKind::kEnd)) {
      const int line = stream_.line();
      if (stream_.At(TokenKind::kData)) {
        body.push_back({line, DataStatement{stream_.current().text}});
        stream_.Skip();
      } else if (stream_.At(TokenKind::kVariableBegin)) {
        stream_.Skip();
        HX_ASSIGN_OR_RETURN(ExprPtr value, exprs_.ParseTuple());
        HX_RETURN_IF_ERROR(stream_.Expect(TokenKind::kVariableEnd));
        body.push_back({line, PrintStatement{std::move(value)}});
      } else {
        HX_RETURN_IF_ERROR(stream_.Expect(TokenKind::kBlockBegin));
        const auto at_name = [this](std::string_view name) {
          return stream_.AtName(name);
        };
        if (std::any_of(end_tags.begin(), end_tags.end(), at_name))
          return OkStatus();
        HX_RETURN_IF_ERROR(ParseStatement(body));
        HX_RETURN_IF_ERROR(stream_.Expect(TokenKind::kBlockEnd));
      }
    }
    if (end_tags.size() == 0) return OkStatus();
    return stream_.Fail(
        fmt::format("the template ends where '{{% {} %}}' is missing",
                    *(end_tags.end() - 1)));
  }

  // The end of the opening tag and the statements behind it, up to one of
  // `end_tags`.
  Result<Body> ParseBlock(EndTags end_tags) {
    stream_.SkipOperator(":");
    HX_RETURN_IF_ERROR(stream_.Expect(TokenKind::kBlockEnd));
    return ParseBody(end_tags);
  }

  // The same for a block with one end tag, which is skipped.
  Result<Block> ParseWholeBlock(std::string_view end_tag) {
    HX_ASSIGN_OR_RETURN(Body body, ParseBlock({end_tag}));
    stream_.Skip();
    return Block{std::move(body), {}};
  }

  // Parses the statement whose name is the current token and appends it (print
  // may append several).
  Status ParseStatement(Body& body) {
    const int line = stream_.line();
    const std::string tag = stream_.current().text;
    if (!stream_.At(TokenKind::kName))
      return stream_.Unexpected("the name of a tag");
    if (tag == "print") return ParsePrint(body);
    using Method = Result<Statement> (Parser::*)();
    static constexpr std::pair<std::string_view, Method> kTags[] = {
        {"if", &Parser::ParseIf},
        {"for", &Parser::ParseFor},
        {"set", &Parser::ParseSet},
        {"macro", &Parser::ParseMacro},
        {"call", &Parser::ParseCallBlock},
        {"filter", &Parser::ParseFilterBlock},
        {"with", &Parser::ParseWith},
        {"generation", &Parser::ParseGeneration},
        {"break", &Parser::ParseLoopControl},
        {"continue", &Parser::ParseLoopControl},
    };
    for (const auto& [name, method] : kTags) {
      if (name != tag) continue;
      HX_ASSIGN_OR_RETURN(Statement statement, (this->*method)());
      statement.line = line;
      body.push_back(std::move(statement));
      return OkStatus();
    }
    if (std::find(std::begin(kUnsupportedTags), std::end(kUnsupportedTags),
                  tag) != std::end(kUnsupportedTags)) {
      return stream_.Unsupported(fmt::format("the tag '{}'", tag));
    }
    return stream_.Fail(fmt::format("unknown tag '{}'", tag));
  }

  Status ParsePrint(Body& body) {
    const int line = stream_.line();
    stream_.Skip();
    bool first = true;
    while (!stream_.At(TokenKind::kBlockEnd)) {
      if (!first) HX_RETURN_IF_ERROR(stream_.ExpectOperator(","));
      first = false;
      HX_ASSIGN_OR_RETURN(ExprPtr value, exprs_.ParseExpression());
      body.push_back({line, PrintStatement{std::move(value)}});
    }
    return OkStatus();
  }

  Result<Statement> ParseIf() {
    exprs_.EnterConditional();
    auto statement = ParseIfBranches();
    exprs_.LeaveConditional();
    return statement;
  }

  Result<Statement> ParseIfBranches() {
    IfStatement statement;
    do {
      stream_.Skip();  // if, elif
      HX_ASSIGN_OR_RETURN(ExprPtr condition,
                          exprs_.ParseTuple(Conditional::kExcluded));
      HX_ASSIGN_OR_RETURN(Body body, ParseBlock({"elif", "else", "endif"}));
      statement.branches.emplace_back(std::move(condition), std::move(body));
    } while (stream_.AtName("elif"));
    if (stream_.SkipName("else")) {
      HX_ASSIGN_OR_RETURN(statement.otherwise, ParseBlock({"endif"}));
    }
    stream_.Skip();  // endif
    return Statement{0, std::move(statement)};
  }

  Result<Statement> ParseFor() {
    stream_.Skip();
    ForStatement statement;
    HX_ASSIGN_OR_RETURN(statement.target, ParseTarget("in"));
    HX_RETURN_IF_ERROR(CheckLoopTarget(statement.target));
    HX_RETURN_IF_ERROR(stream_.ExpectName("in"));
    HX_ASSIGN_OR_RETURN(statement.iterable,
                        exprs_.ParseTuple(Conditional::kExcluded));
    if (stream_.SkipName("if")) {
      HX_ASSIGN_OR_RETURN(statement.condition, exprs_.ParseExpression());
    }
    statement.recursive = stream_.SkipName("recursive");
    ++loop_depth_;
    auto body = ParseBlock({"else", "endfor"});
    --loop_depth_;
    if (!body.ok()) return std::move(body).error();
    statement.body.statements = std::move(body).value();
    if (stream_.SkipName("else")) {
      HX_ASSIGN_OR_RETURN(statement.otherwise, ParseWholeBlock("endfor"));
    } else {
      stream_.Skip();  // endfor
    }
    return Statement{0, std::move(statement)};
  }

  Status CheckLoopTarget(const Target& target) const {
    if (target.name == "loop" && target.attribute.empty()) {
      return stream_.Fail(
          "cannot assign to the special variable 'loop' inside of a for loop");
    }
    for (const Target& item : target.items)
      HX_RETURN_IF_ERROR(CheckLoopTarget(item));
    return OkStatus();
  }

  Result<Statement> ParseSet() {
    stream_.Skip();
    HX_ASSIGN_OR_RETURN(Target target, ParseTarget(""));
    if (loop_depth_ > 0) HX_RETURN_IF_ERROR(CheckLoopTarget(target));
    if (stream_.SkipOperator("=")) {
      HX_ASSIGN_OR_RETURN(ExprPtr value, exprs_.ParseTuple());
      return Statement{0, SetStatement{std::move(target), std::move(value)}};
    }
    SetBlockStatement statement;
    statement.target = std::move(target);
    HX_ASSIGN_OR_RETURN(
        statement.filter,
        exprs_.ParseFilters(nullptr, ExprParser::FilterStart::kAtPipe));
    HX_ASSIGN_OR_RETURN(statement.body, ParseWholeBlock("endset"));
    return Statement{0, std::move(statement)};
  }

  // One target, or several with commas; `stop` is a name that ends them.
  Result<Target> ParseTarget(std::string_view stop) {
    HX_RETURN_IF_ERROR(exprs_.Enter());
    auto target = ParseTargetList(stop);
    exprs_.Leave();
    return target;
  }

  Result<Target> ParseTargetList(std::string_view stop) {
    Target tuple;
    tuple.line = stream_.line();
    HX_ASSIGN_OR_RETURN(Target first, ParseOneTarget());
    if (!stream_.AtOperator(",")) return first;
    tuple.items.push_back(std::move(first));
    while (stream_.SkipOperator(",")) {
      if (stream_.AtOperator("=") || stream_.AtOperator(")") ||
          stream_.At(TokenKind::kBlockEnd) || stream_.AtName(stop))
        break;
      HX_ASSIGN_OR_RETURN(Target item, ParseOneTarget());
      tuple.items.push_back(std::move(item));
    }
    return tuple;
  }

  Result<Target> ParseOneTarget() {
    if (stream_.SkipOperator("(")) {
      HX_ASSIGN_OR_RETURN(Target inner, ParseTarget(""));
      HX_RETURN_IF_ERROR(stream_.ExpectOperator(")"));
      return inner;
    }
    Target target;
    target.line = stream_.line();
    HX_ASSIGN_OR_RETURN(target.name, TakeVariableName());
    if (stream_.SkipOperator(".")) {
      HX_ASSIGN_OR_RETURN(target.attribute, stream_.TakeName());
    }
    return target;
  }

  // A name that may be assigned to.
  Result<std::string> TakeVariableName() {
    constexpr std::string_view kConstants[] = {"true",  "True", "false",
                                               "False", "none", "None"};
    const std::string& name = stream_.current().text;
    if (std::find(std::begin(kConstants), std::end(kConstants), name) !=
        std::end(kConstants)) {
      return stream_.Fail(fmt::format("cannot assign to '{}'", name));
    }
    return stream_.TakeName();
  }

  // (a, b=1): the parameters of a macro or call block.
  Status ParseParameters(MacroDef& macro) {
    HX_RETURN_IF_ERROR(stream_.ExpectOperator("("));
    while (!stream_.AtOperator(")")) {
      if (!macro.parameters.empty())
        HX_RETURN_IF_ERROR(stream_.ExpectOperator(","));
      Parameter parameter;
      HX_ASSIGN_OR_RETURN(parameter.name, TakeVariableName());
      if (stream_.SkipOperator("=")) {
        HX_ASSIGN_OR_RETURN(parameter.fallback, exprs_.ParseExpression());
      } else if (!macro.parameters.empty() &&
                 macro.parameters.back().fallback != nullptr) {
        return stream_.Fail(
            "a parameter without default follows one with a default");
      }
      macro.parameters.push_back(std::move(parameter));
      if (macro.parameters.size() > kMaxArguments) {
        return stream_.Unsupported(
            fmt::format("a macro with more than {} parameters", kMaxArguments));
      }
    }
    return stream_.ExpectOperator(")");
  }

  // The body of a macro or call block: a function of its own, so loops around
  // it cannot be left from inside.
  Status ParseMacroBody(MacroDef& macro, std::string_view end_tag) {
    const ExprParser::Mentions outer = exprs_.mentions();
    const int outer_loops = loop_depth_;
    exprs_.mentions() = {};
    loop_depth_ = 0;
    auto body = ParseWholeBlock(end_tag);
    ExprParser::Mentions inner = exprs_.mentions();
    exprs_.mentions() = {outer.caller || inner.caller,
                         outer.kwargs || inner.kwargs,
                         outer.varargs || inner.varargs};
    loop_depth_ = outer_loops;
    if (!body.ok()) return std::move(body).error();
    macro.body = std::move(body).value();
    for (const Parameter& parameter :
         macro.parameters) {  // ordinary parameters of these names
      if (parameter.name == "caller") inner.caller = false;
      if (parameter.name == "kwargs") inner.kwargs = false;
      if (parameter.name == "varargs") inner.varargs = false;
    }
    macro.uses_caller = inner.caller;
    macro.uses_kwargs = inner.kwargs;
    macro.uses_varargs = inner.varargs;
    return OkStatus();
  }

  Result<Statement> ParseMacro() {
    stream_.Skip();
    MacroStatement statement;
    HX_ASSIGN_OR_RETURN(statement.macro.name, TakeVariableName());
    HX_RETURN_IF_ERROR(ParseParameters(statement.macro));
    HX_RETURN_IF_ERROR(ParseMacroBody(statement.macro, "endmacro"));
    return Statement{0, std::move(statement)};
  }

  Result<Statement> ParseCallBlock() {
    stream_.Skip();
    CallBlockStatement statement;
    if (stream_.AtOperator("("))
      HX_RETURN_IF_ERROR(ParseParameters(statement.caller));
    HX_ASSIGN_OR_RETURN(statement.call, exprs_.ParseExpression());
    if (!std::holds_alternative<CallExpr>(statement.call->node))
      return stream_.Fail("a call block needs a call");
    HX_RETURN_IF_ERROR(ParseMacroBody(statement.caller, "endcall"));
    return Statement{0, std::move(statement)};
  }

  Result<Statement> ParseFilterBlock() {
    stream_.Skip();
    FilterBlockStatement statement;
    HX_ASSIGN_OR_RETURN(
        statement.filter,
        exprs_.ParseFilters(nullptr, ExprParser::FilterStart::kAtName));
    HX_ASSIGN_OR_RETURN(statement.body, ParseWholeBlock("endfilter"));
    return Statement{0, std::move(statement)};
  }

  Result<Statement> ParseWith() {
    stream_.Skip();
    WithStatement statement;
    while (!stream_.At(TokenKind::kBlockEnd)) {
      if (!statement.bindings.empty())
        HX_RETURN_IF_ERROR(stream_.ExpectOperator(","));
      HX_ASSIGN_OR_RETURN(Target target, ParseTarget(""));
      HX_RETURN_IF_ERROR(stream_.ExpectOperator("="));
      HX_ASSIGN_OR_RETURN(ExprPtr value, exprs_.ParseExpression());
      statement.bindings.emplace_back(std::move(target), std::move(value));
    }
    HX_ASSIGN_OR_RETURN(statement.body, ParseWholeBlock("endwith"));
    return Statement{0, std::move(statement)};
  }

  Result<Statement> ParseGeneration() {
    stream_.Skip();
    MacroDef block;  // jinja2 compiles it as a call block
    HX_RETURN_IF_ERROR(ParseMacroBody(block, "endgeneration"));
    return Statement{0, GenerationStatement{std::move(block.body)}};
  }

  Result<Statement> ParseLoopControl() {
    if (loop_depth_ == 0)
      return stream_.Fail(
          fmt::format("'{}' outside of a loop", stream_.current().text));
    const bool is_break = stream_.AtName("break");
    stream_.Skip();
    if (is_break) return Statement{0, BreakStatement{}};
    return Statement{0, ContinueStatement{}};
  }

  TokenStream stream_;
  ExprParser exprs_;
  int loop_depth_ = 0;  // loops around this point within the same macro
};

}  // namespace

Result<Block> ParseTemplate(std::string_view source) {
  HX_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  HX_ASSIGN_OR_RETURN(Block block, Parser(std::move(tokens)).ParseAll());
  FindUnsetVariables(block);
  return block;
}

}  // namespace hexllm::jinja

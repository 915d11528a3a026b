// Parse: the reading half of ir/text.h. One statement a line; // starts a
// comment.
#include <fmt/format.h>

#include <map>

#include "base/bytes.h"
#include "base/quote.h"
#include "ir/axes.h"
#include "ir/pseudo_random.h"
#include "ir/text.h"
#include "ir/text_lexer.h"
#include "ir/verify.h"

namespace hexllm::ir {
namespace {

// What the made-up data of a text's constants may take: far above any real
// model, far below a machine's memory.
constexpr uint64_t kMaxDataBytes = uint64_t{512} << 20;
constexpr uint64_t kMaxRows = uint64_t{1} << 24;

Error Bad(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

Result<TensorType> ParseType(LineLexer& line) {
  HX_RETURN_IF_ERROR(line.Expect(":"));
  HX_ASSIGN_OR_RETURN(const std::string_view word, line.Word());
  const auto dtype = FindDTypeByName(word);
  if (!dtype) return Bad(fmt::format("no type {}", Quoted(word)));
  HX_ASSIGN_OR_RETURN(Shape shape, line.NumberList<int64_t>());
  TensorType type{.dtype = *dtype, .shape = std::move(shape)};
  if (!StorageBytes(type.dtype, type.shape))
    return Bad("bad shape " + TypeToString(type));
  return type;
}

Result<Role> ParseRoleText(LineLexer& line) {
  HX_ASSIGN_OR_RETURN(const std::string_view word, line.Word());
  std::string text(word);
  if (line.Take("[")) {
    if (text == "tap") {
      HX_ASSIGN_OR_RETURN(std::string name, line.QuotedString());
      HX_RETURN_IF_ERROR(line.Expect("]"));
      return Role{.kind = RoleKind::kTap, .index = 0, .name = std::move(name)};
    }
    HX_ASSIGN_OR_RETURN(const int32_t index, line.Number<int32_t>());
    HX_RETURN_IF_ERROR(line.Expect("]"));
    text += fmt::format("[{}]", index);
  }
  const auto role = ParseRole(text);
  if (!role) return Bad("no role " + Quoted(text));
  return *role;
}

Result<AttrValue> ParseAttrValue(LineLexer& line, AttrType type) {
  switch (type) {
    case AttrType::kInt: {
      HX_ASSIGN_OR_RETURN(const int64_t value, line.Number<int64_t>());
      return AttrValue(value);
    }
    case AttrType::kFloat: {
      HX_ASSIGN_OR_RETURN(const double value, line.Number<double>());
      return AttrValue(value);
    }
    case AttrType::kInts: {
      HX_ASSIGN_OR_RETURN(std::vector<int64_t> value,
                          line.NumberList<int64_t>());
      return AttrValue(std::move(value));
    }
  }
  return Bad("no such attribute type");
}

Status ParseAttr(LineLexer& line, const OpInfo& op, Attrs& attrs) {
  HX_ASSIGN_OR_RETURN(const std::string_view word, line.Word());
  const auto name = FindAttr(word);
  for (const AttrSpec& spec : op.attrs) {
    if (name != spec.name) continue;
    HX_RETURN_IF_ERROR(line.Expect("="));
    attrs.push_back({.name = spec.name, .value = {}});
    HX_ASSIGN_OR_RETURN(attrs.back().value, ParseAttrValue(line, spec.type));
    return OkStatus();
  }
  return Bad(fmt::format("{} has no attribute {}", op.name, Quoted(word)));
}

Result<Attrs> ParseAttrs(LineLexer& line, const OpInfo& op) {
  Attrs attrs;
  if (!line.Take("{")) return attrs;
  do {
    HX_RETURN_IF_ERROR(ParseAttr(line, op, attrs));
  } while (line.Take(","));
  HX_RETURN_IF_ERROR(line.Expect("}"));
  return attrs;
}

// `name=` and a number.
template <typename T>
Result<T> ParseField(LineLexer& line, std::string_view name) {
  HX_RETURN_IF_ERROR(line.Expect(name));
  HX_RETURN_IF_ERROR(line.Expect("="));
  return line.Number<T>();
}

// `name=` and a list, if it comes next.
template <typename T>
Status ParseOptionalList(LineLexer& line, std::string_view name,
                         std::vector<T>& list) {
  if (!line.Take(std::string(name) + "=")) return OkStatus();
  HX_ASSIGN_OR_RETURN(list, line.NumberList<T>());
  return OkStatus();
}

// `name=` and a number, if it comes next.
Status ParseOptionalField(LineLexer& line, std::string_view name,
                          int32_t& value) {
  if (!line.Take(std::string(name) + "=")) return OkStatus();
  HX_ASSIGN_OR_RETURN(value, line.Number<int32_t>());
  return OkStatus();
}

// What stands behind the reference of an encoding line.
Result<Encoding> ParseEncoding(LineLexer& line) {
  HX_ASSIGN_OR_RETURN(const std::string_view word, line.Word());
  const auto dtype = FindDTypeByName(word);
  if (!dtype) return Bad(fmt::format("no type {}", Quoted(word)));
  Encoding encoding{.dtype = *dtype};
  HX_RETURN_IF_ERROR(ParseOptionalField(line, "bits", encoding.bits));
  HX_RETURN_IF_ERROR(ParseOptionalField(line, "axis", encoding.axis));
  HX_RETURN_IF_ERROR(ParseOptionalField(line, "block", encoding.block));
  HX_RETURN_IF_ERROR(ParseOptionalList(line, "scales", encoding.scales));
  HX_RETURN_IF_ERROR(
      ParseOptionalList(line, "zero_points", encoding.zero_points));
  HX_RETURN_IF_ERROR(
      ParseOptionalList(line, "block_scales", encoding.block_scales));
  return encoding;
}

// The module under construction, fed line by line.
class Parser {
 public:
  Status Line(std::string_view text) {
    LineLexer line(text);
    if (line.AtEnd()) return OkStatus();
    HX_RETURN_IF_ERROR(open_ ? GraphLine(line) : ModuleLine(line));
    return line.ExpectEnd();
  }

  Result<Module> Finish() && {
    if (open_)
      return Bad("expected '}' of the last graph, found the end of the text");
    HX_RETURN_IF_ERROR(Verify(module_));
    return std::move(module_);
  }

 private:
  Graph& graph() { return module_.graphs.back(); }

  Status ModuleLine(LineLexer& line) {
    if (line.Take("const ")) return ConstLine(line);
    if (line.Take("graph ")) return GraphHeader(line);
    if (line.Take("encoding ")) return ConstantEncodingLine(line);
    return line.Unexpected("'const', 'encoding' or 'graph'");
  }

  Status GraphLine(LineLexer& line) {
    if (line.Take("}")) return CloseGraph();
    if (line.Take("in ")) return InputLine(line);
    if (line.Take("out ")) return OutputLine(line);
    if (line.Take("encoding ")) return EncodingLine(line);
    if (line.Sees("%")) return NodeLine(line);
    return line.Unexpected("'in', 'out', 'encoding', '%' or '}'");
  }

  Status ConstLine(LineLexer& line) {
    HX_RETURN_IF_ERROR(line.Expect("@"));
    HX_ASSIGN_OR_RETURN(const std::string_view label, line.Word());
    HX_ASSIGN_OR_RETURN(std::string name, line.QuotedString());
    HX_ASSIGN_OR_RETURN(TensorType type, ParseType(line));
    const auto bytes = RandomConstantBytes(type);
    if (!bytes)
      return Bad("no constant can have the type " + TypeToString(type));
    const auto rows =
        static_cast<uint64_t>(type.shape.size() < 2 ? 1 : type.shape[0]);
    if (*bytes > kMaxDataBytes - data_bytes_ || rows > kMaxRows - rows_) {
      return Bad(fmt::format("constants beyond {} bytes of data or {} rows",
                             kMaxDataBytes, kMaxRows));
    }
    data_bytes_ += *bytes;
    rows_ += rows;
    const auto [at, is_new] = constants_.try_emplace(std::string(label));
    if (!is_new)
      return Bad("the constant @" + std::string(label) + " occurs twice");
    at->second = module_.constants.Add(
        MakeRandomConstant(std::move(name), std::move(type)));
    return OkStatus();
  }

  Status GraphHeader(LineLexer& line) {
    HX_ASSIGN_OR_RETURN(const std::string_view name, line.Word());
    HX_RETURN_IF_ERROR(line.Expect("kind="));
    HX_ASSIGN_OR_RETURN(const std::string_view kind_text, line.Word());
    const auto kind = ParseGraphKind(kind_text);
    if (!kind) return Bad("no graph kind " + Quoted(kind_text));
    HX_ASSIGN_OR_RETURN(const int64_t step_tokens,
                        ParseField<int64_t>(line, "T"));
    HX_ASSIGN_OR_RETURN(const int64_t context_tokens,
                        ParseField<int64_t>(line, "C"));
    uint32_t shard = 0;
    if (line.Sees("shard")) {
      HX_ASSIGN_OR_RETURN(shard, ParseField<uint32_t>(line, "shard"));
    }
    HX_RETURN_IF_ERROR(line.Expect("{"));
    open_ = true;
    values_.clear();
    constant_values_.clear();
    module_.graphs.emplace_back();
    graph().name = name;
    graph().kind = *kind;
    graph().step_tokens = step_tokens;
    graph().context_tokens = context_tokens;
    graph().shard = shard;
    return OkStatus();
  }

  Status CloseGraph() {
    open_ = false;
    return Verify(module_, graph());
  }

  Status InputLine(LineLexer& line) {
    HX_ASSIGN_OR_RETURN(const int64_t number, NewNumber(line));
    HX_ASSIGN_OR_RETURN(Role role, ParseRoleText(line));
    std::string name = RoleToString(role);
    if (line.Sees("\"")) {
      HX_ASSIGN_OR_RETURN(name, line.QuotedString());
    }
    HX_ASSIGN_OR_RETURN(TensorType type, ParseType(line));
    const ValueId id = graph().AddInput(std::move(role), std::move(type));
    graph()[id].name = std::move(name);
    values_[number] = id;
    return OkStatus();
  }

  Status OutputLine(LineLexer& line) {
    HX_ASSIGN_OR_RETURN(const ValueId id, Reference(line));
    HX_ASSIGN_OR_RETURN(Role role, ParseRoleText(line));
    graph().AddOutput(std::move(role), id);
    return OkStatus();
  }

  Status NodeLine(LineLexer& line) {
    HX_ASSIGN_OR_RETURN(const int64_t number, NewNumber(line));
    HX_RETURN_IF_ERROR(line.Expect("="));
    HX_ASSIGN_OR_RETURN(const std::string_view op_name, line.Word());
    const OpInfo* op = FindOp(op_name);
    if (op == nullptr) return Bad("no op " + Quoted(op_name));
    HX_ASSIGN_OR_RETURN(std::vector<ValueId> inputs, Arguments(line));
    HX_ASSIGN_OR_RETURN(Attrs attrs, ParseAttrs(line, *op));
    HX_ASSIGN_OR_RETURN(std::string name, line.QuotedString());
    HX_ASSIGN_OR_RETURN(const TensorType type, ParseType(line));
    std::vector<const TensorType*> types;
    for (const ValueId id : inputs) types.push_back(&graph().type(id));
    HX_ASSIGN_OR_RETURN(const TensorType inferred,
                        InferType(op->kind, {.inputs = types, .attrs = attrs}));
    if (type != inferred) {
      return Bad(fmt::format("{}: expected the type {}, found {}", op_name,
                             TypeToString(inferred), TypeToString(type)));
    }
    values_[number] = graph().AddNode(op->kind, std::move(inputs),
                                      std::move(attrs), std::move(name));
    return OkStatus();
  }

  Status EncodingLine(LineLexer& line) {
    if (line.Sees("@"))
      return Bad("the encoding of a constant belongs behind its 'const'");
    HX_ASSIGN_OR_RETURN(const ValueId id, Reference(line));
    if (graph()[id].encoding) return Bad("a second encoding of one value");
    HX_ASSIGN_OR_RETURN(graph()[id].encoding, ParseEncoding(line));
    return OkStatus();
  }

  Status ConstantEncodingLine(LineLexer& line) {
    HX_RETURN_IF_ERROR(line.Expect("@"));
    HX_ASSIGN_OR_RETURN(const ConstantId id, ConstantLabel(line));
    if (module_.constants[id].encoding)
      return Bad("a second encoding of one constant");
    HX_ASSIGN_OR_RETURN(Encoding encoding, ParseEncoding(line));
    module_.constants.SetEncoding(id, std::move(encoding));
    return OkStatus();
  }

  Result<std::vector<ValueId>> Arguments(LineLexer& line) {
    std::vector<ValueId> ids;
    HX_RETURN_IF_ERROR(line.Expect("("));
    if (line.Take(")")) return ids;
    do {
      HX_ASSIGN_OR_RETURN(const ValueId id, Reference(line));
      ids.push_back(id);
    } while (line.Take(","));
    HX_RETURN_IF_ERROR(line.Expect(")"));
    return ids;
  }

  // The number of a value that is about to be defined.
  Result<int64_t> NewNumber(LineLexer& line) {
    HX_RETURN_IF_ERROR(line.Expect("%"));
    HX_ASSIGN_OR_RETURN(const int64_t number, line.Number<int64_t>());
    if (values_.contains(number))
      return Bad(fmt::format("%{} is defined twice", number));
    return number;
  }

  // %number of a defined value, or @label of a constant.
  Result<ValueId> Reference(LineLexer& line) {
    if (line.Take("@")) return ConstantReference(line);
    HX_RETURN_IF_ERROR(line.Expect("%"));
    HX_ASSIGN_OR_RETURN(const int64_t number, line.Number<int64_t>());
    const auto at = values_.find(number);
    if (at == values_.end())
      return Bad(fmt::format("%{} is not defined before", number));
    return at->second;
  }

  // The constant whose label comes next.
  Result<ConstantId> ConstantLabel(LineLexer& line) {
    HX_ASSIGN_OR_RETURN(const std::string_view label, line.Word());
    const auto at = constants_.find(label);
    if (at == constants_.end())
      return Bad("no constant @" + std::string(label));
    return at->second;
  }

  Result<ValueId> ConstantReference(LineLexer& line) {
    HX_ASSIGN_OR_RETURN(const ConstantId id, ConstantLabel(line));
    const auto [value, is_new] = constant_values_.try_emplace(id);
    if (is_new) value->second = graph().AddConstant(id, module_.constants[id]);
    return value->second;
  }

  Module module_;
  std::map<std::string, ConstantId, std::less<>> constants_;  // by label
  uint64_t data_bytes_ = 0;
  uint64_t rows_ = 0;
  // Of the open graph:
  bool open_ = false;
  std::map<int64_t, ValueId> values_;  // by number
  std::map<ConstantId, ValueId> constant_values_;
};

}  // namespace

Result<Module> Parse(std::string_view text) {
  Parser parser;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = text.find('\n');
    Status status = parser.Line(text.substr(0, end));
    if (!status.ok())
      return std::move(status).error().With(fmt::format("line {}", number));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  auto module = std::move(parser).Finish();
  if (!module.ok())
    return std::move(module).error().With(fmt::format("line {}", number));
  return module;
}

}  // namespace hexllm::ir

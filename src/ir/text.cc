// Print. Parse is in ir/text_parse.cc.
#include "ir/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "base/quote.h"
#include "ir/axes.h"

namespace hexllm::ir {
namespace {

// "name" with \\, \" and \xNN, as ir/text_lexer.h reads it.
std::string QuotedText(std::string_view text) {
  std::string out = "\"";
  for (const char c : Printable(text, std::numeric_limits<size_t>::max())) {
    if (c == '"') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string RoleText(const Role& role) {
  if (role.kind != RoleKind::kTap) return RoleToString(role);
  return "tap[" + QuotedText(role.name) + "]";
}

struct AttrPrinter {
  std::string operator()(int64_t value) const {
    return fmt::format("{}", value);
  }
  std::string operator()(double value) const {
    return fmt::format("{}", value);
  }
  std::string operator()(const std::vector<int64_t>& value) const {
    return ShapeToString(value);
  }
};

std::string AttrsText(const Attrs& attrs) {
  if (attrs.empty()) return "";
  std::vector<std::string> parts;
  for (const Attr& attr : attrs) {
    parts.push_back(fmt::format("{}={}", AttrText(attr.name),
                                std::visit(AttrPrinter(), attr.value)));
  }
  return fmt::format(" {{{}}}", fmt::join(parts, ", "));
}

// "encoding %1 u16 scales=[0.01] zero_points=[32768]": what is not said is as
// in a default-made Encoding.
std::string EncodingText(const std::string& ref, const Encoding& encoding) {
  std::string out =
      fmt::format("encoding {} {}", ref, DTypeName(encoding.dtype));
  if (encoding.bits != 0) out += fmt::format(" bits={}", encoding.bits);
  if (encoding.axis != -1) out += fmt::format(" axis={}", encoding.axis);
  if (encoding.block != 0) out += fmt::format(" block={}", encoding.block);
  if (!encoding.scales.empty())
    out += fmt::format(" scales=[{}]", fmt::join(encoding.scales, ","));
  if (!encoding.zero_points.empty())
    out +=
        fmt::format(" zero_points=[{}]", fmt::join(encoding.zero_points, ","));
  if (!encoding.block_scales.empty())
    out += fmt::format(" block_scales=[{}]",
                       fmt::join(encoding.block_scales, ","));
  return out + "\n";
}

// Values are numbered in the order of their definition, constants left out, so
// that equal graphs print equally.
class GraphPrinter {
 public:
  explicit GraphPrinter(const Graph& graph)
      : graph_(graph), numbers_(graph.values.size(), -1) {}

  std::string Run() {
    out_ = fmt::format("graph {} kind={} T={} C={} ", graph_.name,
                       GraphKindName(graph_.kind), graph_.step_tokens,
                       graph_.context_tokens);
    if (graph_.shard > 0) out_ += fmt::format("shard={} ", graph_.shard);
    out_ += "{\n";
    for (const GraphIo& io : graph_.inputs) PrintInput(io);
    for (const Node& node : graph_.nodes) PrintNode(node);
    for (const GraphIo& io : graph_.outputs) {
      out_ += fmt::format("  out {} {}\n", Ref(io.value), RoleText(io.role));
    }
    return out_ + "}\n";
  }

 private:
  std::string Ref(ValueId id) const {
    const Value& value = graph_[id];
    if (value.constant.valid())
      return fmt::format("@w{}", value.constant.index);
    return fmt::format("%{}", numbers_[static_cast<size_t>(id.index)]);
  }

  void Define(ValueId id) {
    numbers_[static_cast<size_t>(id.index)] = next_number_++;
  }

  void PrintInput(const GraphIo& io) {
    Define(io.value);
    const Value& value = graph_[io.value];
    const bool plain_name = value.name == RoleToString(io.role);
    out_ += fmt::format("  in {} {}{} : {}\n", Ref(io.value), RoleText(io.role),
                        plain_name ? "" : " " + QuotedText(value.name),
                        TypeToString(value.type));
    PrintEncoding(io.value);
  }

  void PrintNode(const Node& node) {
    std::vector<std::string> refs;
    for (const ValueId id : node.inputs) refs.push_back(Ref(id));
    Define(node.output);
    const Value& output = graph_[node.output];
    out_ += fmt::format("  {} = {}({}){} {} : {}\n", Ref(node.output),
                        GetOpInfo(node.op).name, fmt::join(refs, ", "),
                        AttrsText(node.attrs), QuotedText(output.name),
                        TypeToString(output.type));
    PrintEncoding(node.output);
  }

  void PrintEncoding(ValueId id) {
    const auto& encoding = graph_[id].encoding;
    if (encoding) out_ += "  " + EncodingText(Ref(id), *encoding);
  }

  const Graph& graph_;
  std::vector<int> numbers_;
  int next_number_ = 0;
  std::string out_;
};

}  // namespace

std::string Print(const Module& module) {
  std::string out;
  for (size_t i = 0; i < module.constants.size(); ++i) {
    const Constant& constant = module.constants[{static_cast<int32_t>(i)}];
    out += fmt::format("const @w{} {} : {}\n", i, QuotedText(constant.name),
                       TypeToString(constant.type));
    if (constant.encoding)
      out += EncodingText(fmt::format("@w{}", i), *constant.encoding);
  }
  for (const Graph& graph : module.graphs) out += GraphPrinter(graph).Run();
  return out;
}

}  // namespace hexllm::ir

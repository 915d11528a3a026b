#include "quant/assign_static.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/half.h"
#include "base/quote.h"
#include "ir/encode.h"

namespace hexllm::quant {
namespace {

// How far below the least visible score a hidden one ends: e^-20 of its
// probability is less than a step of 16 bits.
constexpr float kHiddenBelow = 20;

bool IsHalf(const LayerSettings& settings) {
  return settings.scheme->activations == ActivationKind::kFloat16;
}

ActivationFormat FormatOf(const LayerSettings& settings) {
  return {.bits = settings.scheme->activation_bits,
          .zero_point = settings.symmetric_activations ? ZeroPoint::kMiddle
                                                       : ZeroPoint::kFree};
}

// Whether a layer can read an input of that encoding.
bool Suits(const ir::Encoding& encoding, const LayerSettings& settings) {
  if (IsHalf(settings)) return encoding.dtype == DType::kF16;
  const ActivationFormat format = FormatOf(settings);
  if (encoding.dtype != (format.bits == 8 ? DType::kU8 : DType::kU16))
    return false;
  return format.zero_point == ZeroPoint::kFree ||
         encoding.zero_points[0] == 1 << (format.bits - 1);
}

ir::Encoding Half() { return {.dtype = DType::kF16}; }

}  // namespace

Result<Range> RangeTable::Find(const std::string& name) {
  const ValueRange* found = nullptr;
  if (ranges_ != nullptr) {
    const auto at = ranges_->find(name);
    if (at != ranges_->end()) found = &at->second;
  }
  if (found == nullptr) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("value {}: no range was observed; calibrate with "
                             "at least one token",
                             Quoted(name))};
  }
  const Range range = found->range;
  if (!std::isfinite(range.min) || !std::isfinite(range.max) ||
      range.min > range.max) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("value {}: expected a finite range, found {} to "
                             "{}; check the checkpoint's weights",
                             Quoted(name), range.min, range.max)};
  }
  WarnOf(name, *found);
  return range;
}

void RangeTable::WarnOf(const std::string& name, const ValueRange& found) {
  if (!warned_.insert(name).second) return;
  if (found.clipped > kMostClipped) {
    warnings_.push_back(fmt::format(
        "value {}: its encoding clips {:.2f}% of the observed numbers, "
        "expected at most {:.1f}%; a min-max observer clips none",
        Quoted(name), found.clipped * 100, kMostClipped * 100));
  }
  if (found.range == Range{0, 0}) {
    warnings_.push_back(fmt::format(
        "value {}: all observed numbers are 0, its encoding can hold no others",
        Quoted(name)));
  }
}

StaticAssigner::StaticAssigner(ir::Module& module, ir::Graph& graph,
                               AssignShared shared)
    : module_(module), graph_(graph), shared_(shared), facts_(graph) {
  for (const ir::Node& node : graph.nodes) {
    if (node.op == ir::OpKind::kLinear &&
        shared.options.half_inputs.contains(graph[node.output].name))
      half_products_.insert(SourceOf(graph, node.inputs[0]));
  }
}

Status StaticAssigner::Run() {
  HX_RETURN_IF_ERROR(EncodeInputs());
  for (ir::Node node : graph_.nodes) {
    Status status = EncodeNode(node);
    if (!status.ok())
      return std::move(status).error().With("graph " + graph_.name);
    nodes_.push_back(std::move(node));
  }
  graph_.nodes = std::move(nodes_);
  for (size_t i = 0; i < graph_.nodes.size(); ++i)
    graph_[graph_.nodes[i].output].producer = {static_cast<int32_t>(i)};
  return OkStatus();
}

Status StaticAssigner::EncodeInputs() {
  for (const ir::GraphIo& io : graph_.inputs) {
    switch (io.role.kind) {
      case RoleKind::kEmbedding:
      case RoleKind::kHiddenIn:
      case RoleKind::kRopeCos:
      case RoleKind::kRopeSin: {
        // As where it is made, in another graph or by the host.
        ir::Value& value = graph_[io.value];
        const bool half =
            shared_.options.half_residual && facts_.IsResidual(io.value);
        HX_ASSIGN_OR_RETURN(value.encoding,
                            half ? HalfEncoding(value.name)
                                 : FromRange(value.name, Settings(value.name)));
        break;
      }
      default:
        break;  // indices, masks (EncodeMasks), caches (with what they store)
    }
  }
  return OkStatus();
}

Status StaticAssigner::EncodeNode(ir::Node& node) {
  switch (node.op) {
    case ir::OpKind::kAttention:
    case ir::OpKind::kLinearAdd:
    case ir::OpKind::kGatedMul:
      return Error{ErrorCode::kUnsupported,
                   fmt::format("node {}: {} has no encodings; lower the graph "
                               "with the passes of target htp first",
                               Quoted(graph_[node.output].name),
                               ir::GetOpInfo(node.op).name)};
    case ir::OpKind::kLinear:
      HX_RETURN_IF_ERROR(EncodeLinear(node));
      break;
    case ir::OpKind::kEmbedding:  // the table stays as it is stored
      HX_RETURN_IF_ERROR(CheckTable(node));
      break;
    case ir::OpKind::kConcat:
      HX_RETURN_IF_ERROR(EncodeConcat(node));
      break;
    default:
      HX_RETURN_IF_ERROR(EncodeOtherConstants(node));
  }
  const bool adds_half = AddsHalf(node);
  if (adds_half) ConvertInputs(node, ".term");
  if (half_products_.contains(node.output)) ConvertInputs(node, ".factor");
  if (IsDataMovement(node.op)) {
    graph_[node.output].encoding = graph_[node.inputs[0]].encoding;
    return OkStatus();
  }
  HX_ASSIGN_OR_RETURN(ir::Encoding encoding, OutputEncoding(node));
  if (const CacheUse* use = facts_.FindCache(node.output))
    EncodeCacheInput(*use, encoding);
  if (adds_half && encoding != Half()) {
    AddInHalves(node, std::move(encoding));
  } else {
    graph_[node.output].encoding = std::move(encoding);
  }
  return OkStatus();
}

Status StaticAssigner::EncodeLinear(ir::Node& node) {
  const std::string layer = graph_[node.output].name;
  const ir::ConstantId weight = graph_[node.inputs[1]].constant;
  if (!weight.valid()) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("node {}: expected a constant weight, found a "
                             "computed one",
                             Quoted(layer))};
  }
  if (!half_products_.contains(SourceOf(graph_, node.inputs[0]))) {
    HX_ASSIGN_OR_RETURN(node.inputs[0], ConvertedInput(node.inputs[0], layer));
  }
  HX_ASSIGN_OR_RETURN(const ir::ConstantId encoded,
                      shared_.constants.Weight(weight, layer, Settings(layer),
                                               BiasCodesOf(node)));
  node.inputs[1] = graph_.AddConstant(encoded, module_.constants[encoded]);
  if (node.inputs.size() < 3) return OkStatus();
  if (graph_[node.inputs[0]].encoding != Half()) {
    EncodeBias(node);
    return OkStatus();
  }
  HX_ASSIGN_OR_RETURN(const ir::ConstantId bias,
                      shared_.constants.Tensor(graph_[node.inputs[2]].constant,
                                               layer, /*half=*/true));
  node.inputs[2] = graph_.AddConstant(bias, module_.constants[bias]);
  return OkStatus();
}

BiasOf StaticAssigner::BiasCodesOf(const ir::Node& linear) const {
  const ir::Encoding& x = *graph_[linear.inputs[0]].encoding;
  if (linear.inputs.size() < 3 || !ir::HasCodes(x)) return {};
  return {.id = graph_[linear.inputs[2]].constant,
          .x_scale = static_cast<double>(x.scales[0])};
}

Status StaticAssigner::CheckTable(const ir::Node& embedding) {
  const ir::ConstantId table = graph_[embedding.inputs[1]].constant;
  return table.valid() ? shared_.constants.CheckStored(table) : OkStatus();
}

Result<ir::ValueId> StaticAssigner::ConvertedInput(ir::ValueId x,
                                                   const std::string& layer) {
  const LayerSettings& settings = Settings(layer);
  const auto& present = graph_[x].encoding;
  if (present && Suits(*present, settings)) return x;
  const std::string source = graph_[SourceOf(graph_, x)].name;
  HX_ASSIGN_OR_RETURN(ir::Encoding encoding, FromRange(source, settings));
  return Converted(x, layer + ".input", std::move(encoding));
}

ir::ValueId StaticAssigner::Converted(ir::ValueId x, const std::string& name,
                                      ir::Encoding encoding) {
  std::vector<ir::ValueId>& made = converts_[x];
  for (const ir::ValueId id : made)
    if (graph_[id].encoding == encoding) return id;
  const ir::TensorType type = graph_.type(x);
  const ir::ValueId converted = {static_cast<int32_t>(graph_.values.size())};
  graph_.values.push_back({.type = type,
                           .name = name,
                           .producer = {static_cast<int32_t>(nodes_.size())},
                           .encoding = std::move(encoding)});
  nodes_.push_back({.op = ir::OpKind::kConvert,
                    .inputs = {x},
                    .output = converted,
                    .attrs = {}});
  made.push_back(converted);
  return converted;
}

bool StaticAssigner::AddsHalf(const ir::Node& node) const {
  const ir::ValueId term = facts_.TermOf(node);
  if (!term.valid()) return false;
  return shared_.options.half_residual ||
         graph_[SourceOf(graph_, term)].encoding == Half();
}

void StaticAssigner::ConvertInputs(ir::Node& node, std::string_view suffix) {
  const std::string name = graph_[node.output].name + std::string(suffix);
  for (ir::ValueId& input : node.inputs) {
    if (graph_[input].encoding != Half())
      input = Converted(input, name, Half());
  }
}

void StaticAssigner::AddInHalves(ir::Node& node, ir::Encoding encoding) {
  const ir::ValueId sum = node.output;
  node.output = {static_cast<int32_t>(graph_.values.size())};
  graph_.values.push_back({.type = graph_.type(sum),
                           .name = graph_[sum].name + ".sum",
                           .producer = {},
                           .encoding = Half()});
  graph_[sum].encoding = std::move(encoding);
  nodes_.push_back(node);
  node = {.op = ir::OpKind::kConvert,
          .inputs = {node.output},
          .output = sum,
          .attrs = {}};
}

void StaticAssigner::EncodeBias(ir::Node& node) {
  const std::string layer = graph_[node.output].name;
  const auto x_scale =
      static_cast<double>(graph_[node.inputs[0]].encoding->scales[0]);
  const ir::ConstantId weight = graph_[node.inputs[1]].constant;
  std::vector<float> scales;
  for (const float scale : module_.constants[weight].encoding->scales)
    scales.push_back(static_cast<float>(x_scale * static_cast<double>(scale)));
  const ir::ConstantId bias = shared_.constants.Bias(
      graph_[node.inputs[2]].constant, layer, std::move(scales));
  node.inputs[2] = graph_.AddConstant(bias, module_.constants[bias]);
}

// Gamma becomes the sum that chips multiply with: its codes, or halves, are
// those of that sum.
void StaticAssigner::AddWeightOffset(ir::Node& norm) {
  const auto offset = static_cast<float>(
      ir::FloatAttr(norm.attrs, ir::AttrName::kWeightOffset));
  const ir::ConstantId weight = graph_[norm.inputs[1]].constant;
  if (offset == 0 || !weight.valid()) return;
  const ir::ConstantId sum = shared_.constants.Sum(weight, offset);
  norm.inputs[1] = graph_.AddConstant(sum, module_.constants[sum]);
  for (ir::Attr& attr : norm.attrs) {
    if (attr.name == ir::AttrName::kWeightOffset) attr.value = 0.0;
  }
}

Status StaticAssigner::EncodeOtherConstants(ir::Node& node) {
  const std::string name = graph_[node.output].name;
  const bool half = IsHalf(Settings(name)) || IsHalfOutput(node);
  if (node.op == ir::OpKind::kRmsNorm) AddWeightOffset(node);
  for (ir::ValueId& input : node.inputs) {
    const ir::ConstantId id = graph_[input].constant;
    if (!id.valid()) continue;
    HX_ASSIGN_OR_RETURN(const ir::ConstantId encoded,
                        shared_.constants.Tensor(id, name, half));
    input = graph_.AddConstant(encoded, module_.constants[encoded]);
  }
  return OkStatus();
}

Result<ir::Encoding> StaticAssigner::OutputEncoding(const ir::Node& node) {
  const std::string& name = graph_[node.output].name;
  const LayerSettings& settings = Settings(name);
  if (const CacheUse* use = facts_.FindCache(node.output);
      use != nullptr && node.op == ir::OpKind::kConvert) {
    return CacheEncoding(node, *use);
  }
  if (IsHalfOutput(node)) return HalfEncoding(name);
  if (facts_.FindByOutput(node.output) != nullptr) return MaskedEncoding(name);
  if (const MaskedAdd* masked = facts_.FindByScores(node.output))
    return FromRange(graph_[masked->output].name, settings);
  if (node.op == ir::OpKind::kSoftmax && !IsHalf(settings))
    return ProbabilityEncoding(settings.scheme->activation_bits);
  const CacheUse* stored = facts_.FindConverted(node.output);
  if (stored == nullptr || IsNarrow(*stored)) return FromRange(name, settings);
  LayerSettings symmetric = settings;
  symmetric.symmetric_activations = true;
  return FromRange(name, symmetric);
}

bool StaticAssigner::IsNarrow(CacheUse use) const {
  const bool wide = use.input == RoleKind::kKIn &&
                    shared_.options.wide_k_layers.contains(use.layer);
  return shared_.options.recipe->recipe.kv_bits == 8 && !wide;
}

Result<ir::Encoding> StaticAssigner::CacheEncoding(const ir::Node& node,
                                                   CacheUse use) {
  if (!IsNarrow(use)) return *graph_[node.inputs[0]].encoding;
  HX_ASSIGN_OR_RETURN(const Range range,
                      shared_.ranges.Find(graph_[node.output].name));
  return ActivationEncoding(range,
                            {.bits = 8, .zero_point = ZeroPoint::kMiddle});
}

void StaticAssigner::EncodeCacheInput(CacheUse use,
                                      const ir::Encoding& encoding) {
  const ir::ValueId input = graph_.FindIo({use.input, use.layer});
  if (input.valid()) graph_[input].encoding = encoding;
}

Status StaticAssigner::EncodeConcat(const ir::Node& node) {
  const auto& first = graph_[node.inputs[0]].encoding;
  const auto& second = graph_[node.inputs[1]].encoding;
  if (first && first == second) return OkStatus();
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("node {}: expected inputs of one encoding, found "
                  "{} and {}",
                  Quoted(graph_[node.output].name), first ? "one" : "none",
                  second ? "another" : "none")};
}

Result<ir::Encoding> StaticAssigner::FromRange(const std::string& name,
                                               const LayerSettings& settings) {
  if (IsHalf(settings)) return Half();
  HX_ASSIGN_OR_RETURN(const Range range, shared_.ranges.Find(name));
  return ActivationEncoding(range, FormatOf(settings));
}

bool StaticAssigner::IsHalfOutput(const ir::Node& node) const {
  const AssignOptions& options = shared_.options;
  if (node.op == ir::OpKind::kLinear)
    return options.half_terms.contains(graph_[node.output].name);
  if (half_products_.contains(node.output)) return true;
  if (!options.half_residual) return false;
  if (facts_.IsResidual(node.output)) return true;
  const bool norm =
      node.op == ir::OpKind::kRmsNorm || node.op == ir::OpKind::kLayerNorm;
  return norm && facts_.IsResidual(node.inputs[0]);
}

Result<ir::Encoding> StaticAssigner::HalfEncoding(const std::string& name) {
  if (IsHalf(Defaults())) return Half();
  HX_ASSIGN_OR_RETURN(const Range range, shared_.ranges.Find(name));
  if (MostOf(range) <= kMaxHalf) return Half();
  return Error{ErrorCode::kBadInput,
               fmt::format("value {}: float16 holds numbers up to {}, found {} "
                           "to {}; a recipe with \"residual\": "
                           "\"activations\" keeps it in codes",
                           Quoted(name), kMaxHalf, range.min, range.max)};
}

Result<ir::Encoding> StaticAssigner::MaskedEncoding(const std::string& name) {
  const LayerSettings& settings = Settings(name);
  if (IsHalf(settings)) return Half();
  HX_ASSIGN_OR_RETURN(Range range, shared_.ranges.Find(name));
  range.min -= kHiddenBelow;
  return ActivationEncoding(
      range, ActivationFormat{.bits = settings.scheme->activation_bits});
}

}  // namespace hexllm::quant

#include "quant/assign.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/encode.h"
#include "quant/assign_static.h"
#include "quant/constant_encoder.h"
#include "quant/graph_facts.h"
#include "quant/scheme.h"
#include "quant/weight_encoding.h"

namespace hexllm::quant {
namespace {

bool IsLinear(ir::OpKind op) {
  return op == ir::OpKind::kLinear || op == ir::OpKind::kLinearAdd;
}

// A linear bears its layer's name; where an addition was fused with it, the
// value is the sum and the layer is known by its weight.
std::string LayerOf(const ir::Module& module, const ir::Graph& graph,
                    const ir::Node& node) {
  const ir::ConstantId weight = graph[node.inputs[1]].constant;
  if (node.op == ir::OpKind::kLinear || !weight.valid())
    return graph[node.output].name;
  std::string name = module.constants[weight].name;
  constexpr std::string_view kSuffix = ".weight";
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  return name;
}

// Registers the constants that some reader wants as stored; returns how many
// weights are to be encoded.
int64_t FindPlainConstants(const ir::Module& module,
                           const ResolvedRecipe& recipe,
                           ConstantEncoder& encoder) {
  std::set<std::pair<ir::ConstantId, std::string>> weights;
  for (const ir::Graph& graph : module.graphs) {
    for (const ir::Node& node : graph.nodes) {
      if (!IsLinear(node.op) && node.op != ir::OpKind::kEmbedding) continue;
      const ir::ConstantId id = graph[node.inputs[1]].constant;
      if (!id.valid()) continue;
      std::string layer = LayerOf(module, graph, node);
      if (node.op == ir::OpKind::kEmbedding ||
          !TakesEncoding(module.constants[id], recipe.For(layer)))
        encoder.KeepPlain(id);
      else
        weights.insert({id, std::move(layer)});
    }
  }
  return static_cast<int64_t>(weights.size());
}

Status CheckStoredInputs(const ir::Graph& graph, const ir::Node& node,
                         AssignShared shared) {
  for (const ir::ValueId input : node.inputs) {
    const ir::ConstantId id = graph[input].constant;
    if (id.valid()) HX_RETURN_IF_ERROR(shared.constants.CheckStored(id));
  }
  return OkStatus();
}

Status EncodeDynamicWeights(ir::Module& module, ir::Graph& graph,
                            AssignShared shared) {
  // A recipe that leaves everything as stored: nobody needs to read it now.
  if (!Quantizes(shared.options.recipe->recipe)) return OkStatus();
  for (ir::Node& node : graph.nodes) {
    HX_RETURN_IF_ERROR(CheckStoredInputs(graph, node, shared));
    if (!IsLinear(node.op)) continue;
    const std::string layer = LayerOf(module, graph, node);
    const LayerSettings& settings = shared.options.recipe->For(layer);
    const ir::ConstantId weight = graph[node.inputs[1]].constant;
    if (!IsQuantized(*settings.scheme) || !weight.valid()) continue;
    if (!HasWholeBlocks(module.constants[weight])) {
      shared.constants.WarnOnce(fmt::format(
          "{}: its {} input channels are no whole number of blocks of 32; the "
          "layer stays as stored",
          layer, ir::RowElems(module.constants[weight])));
      continue;
    }
    HX_ASSIGN_OR_RETURN(const ir::ConstantId encoded,
                        shared.constants.Weight(weight, layer, settings));
    node.inputs[1] = graph.AddConstant(encoded, module.constants[encoded]);
  }
  return OkStatus();
}

Status EncodeGraph(ir::Module& module, ir::Graph& graph, AssignShared shared) {
  const Scheme& scheme = *shared.options.recipe->recipe.defaults.scheme;
  if (FamilyOf(scheme) == SchemeFamily::kPlain)
    return EncodeDynamicWeights(module, graph, shared);
  return StaticAssigner(module, graph, shared).Run();
}

// What the ranges that a mask is added in have at most.
struct MaskReach {
  float width = 0;
  int32_t most = 0;  // code; 0 = they are f16
};

void AddReach(const ir::Graph& graph, std::map<int32_t, MaskReach>& reaches) {
  std::map<ir::ValueId, int32_t> indices;
  for (const ir::GraphIo& io : graph.inputs)
    if (io.role.kind == RoleKind::kMask) indices[io.value] = io.role.index;
  const GraphFacts facts(graph);
  for (const auto& [output, masked] : facts.masked_adds()) {
    MaskReach& reach = reaches[indices.at(masked.mask)];
    const ir::Encoding& encoding = *graph[output].encoding;
    if (!ir::HasCodes(encoding)) continue;
    const int32_t most = ir::CodesOf(encoding).most;
    reach.width =
        std::max(reach.width, encoding.scales[0] * static_cast<float>(most));
    reach.most = std::max(reach.most, most);
  }
}

ir::Encoding MaskEncoding(const MaskReach& reach) {
  if (reach.most == 0) return {.dtype = DType::kF16};
  return {.dtype = reach.most > UINT8_MAX ? DType::kU16 : DType::kU8,
          .scales = {reach.width / static_cast<float>(reach.most)},
          .zero_points = {reach.most}};
}

// Of a mask that no graph reads: any with 0.0 as the highest code.
ir::Encoding UnreadMask(const LayerSettings& settings) {
  if (settings.scheme->activations == ActivationKind::kFloat16)
    return {.dtype = DType::kF16};
  return ActivationEncoding(
      Range{-1, 0}, ActivationFormat{.bits = settings.scheme->activation_bits});
}

// The graphs of a module read one mask: it has the form that all of them can do
// with, also where a graph has it and does not read it (its only layer's
// attention goes into no output). After all else.
void EncodeMasks(ir::Module& module, const LayerSettings& defaults) {
  std::map<int32_t, MaskReach> reaches;  // by index of the role
  for (const ir::Graph& graph : module.graphs) AddReach(graph, reaches);
  for (ir::Graph& graph : module.graphs) {
    for (const ir::GraphIo& io : graph.inputs) {
      if (io.role.kind != RoleKind::kMask) continue;
      const auto reach = reaches.find(io.role.index);
      graph[io.value].encoding = reach == reaches.end()
                                     ? UnreadMask(defaults)
                                     : MaskEncoding(reach->second);
    }
  }
}

}  // namespace

std::vector<std::string> ObservedValues(const ir::Graph& graph) {
  const GraphFacts facts(graph);
  std::vector<std::string> names;
  for (const ir::Node& node : graph.nodes) {
    if (IsDataMovement(node.op) || node.op == ir::OpKind::kSoftmax) continue;
    if (facts.FindByScores(node.output) != nullptr) continue;
    names.push_back(graph[node.output].name);
  }
  return names;
}

Result<std::vector<std::string>> AssignEncodings(ir::Module& module,
                                                 const AssignOptions& options) {
  NullProgress no_progress;
  ProgressSink& progress =
      options.progress == nullptr ? no_progress : *options.progress;
  std::vector<std::string> warnings;
  std::optional<WeightSearch> search;
  if (options.search != nullptr) search.emplace(*options.search);
  ConstantEncoder constants(module.constants, progress, warnings,
                            search ? &*search : nullptr);
  RangeTable ranges(options.ranges, warnings);
  progress.Begin("encode weights", "weights",
                 FindPlainConstants(module, *options.recipe, constants));
  for (ir::Graph& graph : module.graphs)
    HX_RETURN_IF_ERROR(
        EncodeGraph(module, graph, {options, ranges, constants}));
  const LayerSettings& defaults = options.recipe->recipe.defaults;
  if (FamilyOf(*defaults.scheme) != SchemeFamily::kPlain)
    EncodeMasks(module, defaults);
  return warnings;
}

}  // namespace hexllm::quant

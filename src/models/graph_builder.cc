#include "models/graph_builder.h"

#include <fmt/format.h>

#include "base/check.h"

namespace hexllm::models {
namespace {

using ir::AttrName;
using ir::OpKind;
using ir::ValueId;

std::string GraphName(const GraphRequest& request) {
  std::string name(GraphKindName(request.kind));
  if (request.kind != GraphKind::kKv)
    name += fmt::format("_{}", request.step_tokens);
  if (request.shards > 1) name += fmt::format("_s{}", request.shard);
  return name;
}

// The first rows (elements of a vector) of a constant that is stored in order.
ir::Constant FirstRows(const ir::Constant& constant, int64_t rows) {
  HX_CHECK(constant.rows.empty());
  ir::Constant first = constant;
  first.type.shape[0] = rows;
  const auto bytes = StorageBytes(first.type.dtype, first.type.shape);
  HX_CHECK(bytes.has_value());
  first.bytes = constant.bytes.first(static_cast<size_t>(*bytes));
  return first;
}

}  // namespace

std::string LayerName(int64_t layer) {
  return fmt::format("model.layers.{}", layer);
}

GraphBuilder::GraphBuilder(const Context& context, const GraphRequest& request)
    : context_(context), request_(request) {
  graph_.name = GraphName(request);
  graph_.kind = request.kind;
  graph_.step_tokens = request.step_tokens;
  graph_.context_tokens = request.context_tokens;
  graph_.shard = static_cast<uint32_t>(request.shard);
}

int64_t GraphBuilder::first_layer() const {
  return FirstLayer(request_, config().layers);
}
int64_t GraphBuilder::end_layer() const {
  return EndLayer(request_, config().layers);
}

Result<ValueId> GraphBuilder::Weight(const WeightRequest& request) {
  HX_ASSIGN_OR_RETURN(const ir::ConstantId id, context_.binder.Bind(request));
  return graph_.AddConstant(id, context_.constants[id]);
}

Result<ValueId> GraphBuilder::VocabWeight(const WeightRequest& request) {
  ir::ConstantStore& constants = context_.constants;
  HX_ASSIGN_OR_RETURN(ir::ConstantId id, context_.binder.Bind(request));
  if (request_.vocab_rows > 0 && request_.vocab_rows < config().vocab)
    id = constants.Add(FirstRows(constants[id], request_.vocab_rows));
  return graph_.AddConstant(id, constants[id]);
}

Result<ValueId> GraphBuilder::Linear(ValueId x, const LinearSpec& spec) {
  const int64_t in = graph_.type(x).shape.back();
  std::vector<ValueId> inputs = {x};
  HX_ASSIGN_OR_RETURN(const ValueId weight, Weight({spec.name + ".weight",
                                                    {spec.out, in},
                                                    spec.head_dim,
                                                    spec.rotary_dim}));
  inputs.push_back(weight);
  if (spec.bias == Bias::kPresent) {
    HX_ASSIGN_OR_RETURN(
        const ValueId bias,
        Weight(
            {spec.name + ".bias", {spec.out}, spec.head_dim, spec.rotary_dim}));
    inputs.push_back(bias);
  }
  return Add(OpKind::kLinear, std::move(inputs), {}, spec.name);
}

ValueId GraphBuilder::RmsNorm(ValueId x, ValueId weight,
                              const std::string& name) {
  return Add(OpKind::kRmsNorm, {x, weight},
             {{AttrName::kEps, config().norm_eps},
              {AttrName::kWeightOffset, config().norm_weight_offset}},
             name);
}

Result<ValueId> GraphBuilder::Norm(ValueId x, const std::string& name) {
  const Shape shape = {graph_.type(x).shape.back()};
  HX_ASSIGN_OR_RETURN(const ValueId weight, Weight({name + ".weight", shape}));
  if (config().norm == NormKind::kRms) return RmsNorm(x, weight, name);
  HX_ASSIGN_OR_RETURN(const ValueId bias, Weight({name + ".bias", shape}));
  return Add(OpKind::kLayerNorm, {x, weight, bias},
             {{AttrName::kEps, config().norm_eps}}, name);
}

Result<ValueId> GraphBuilder::HeadNorm(ValueId x, const LinearSpec& spec) {
  HX_ASSIGN_OR_RETURN(const ValueId weight, Weight({spec.name + ".weight",
                                                    {spec.head_dim},
                                                    spec.head_dim,
                                                    spec.rotary_dim}));
  return RmsNorm(x, weight, spec.name);
}

// linear's rows are those of the transposed matrix.
ValueId GraphBuilder::RotatedHeads(ValueId x, const std::string& name) {
  const std::vector<float>& rotation = config().head_rotation;
  if (rotation.empty()) return x;
  const Shape heads = graph_.type(x).shape;
  const int64_t size = heads.back();
  std::vector<float> transposed(rotation.size());
  for (size_t i = 0; i < rotation.size(); ++i) {
    const auto width = static_cast<size_t>(size);
    transposed[i % width * width + i / width] = rotation[i];
  }
  const ir::ConstantId id = context_.binder.Make(std::string(kHeadRotation),
                                                 {size, size}, transposed);
  const ValueId weight = graph_.AddConstant(id, context_.constants[id]);
  const ValueId flat = Reshape(x, {heads[0] * heads[1], size}, graph_[x].name);
  return Reshape(Add(OpKind::kLinear, {flat, weight}, {}, name), heads, name);
}

ValueId GraphBuilder::Reshape(ValueId x, std::vector<int64_t> shape,
                              const std::string& name) {
  return Add(OpKind::kReshape, {x}, {{AttrName::kShape, std::move(shape)}},
             name);
}

ValueId GraphBuilder::Scaled(ValueId x, double factor,
                             const std::string& name) {
  if (factor == 1) return x;
  // A number of f32, as plans keep it: the interpreter then computes the same.
  const double rounded = static_cast<float>(factor);
  return Add(OpKind::kScale, {x}, {{AttrName::kFactor, rounded}}, name);
}

}  // namespace hexllm::models

// linear: a Conv2d of 1 x 1 over [1,1,T,K]. FullyConnected compiles to the same
// schedule, but does not take weights in blocks.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {
namespace {

struct LinearNode {
  const ir::Node& node;
  const ir::Constant& w;
  DType dtype;  // of x and the output
};

Status CheckFeatures(const GraphLowering& lowering, const LinearNode& linear) {
  if (linear.w.encoding && linear.w.encoding->block > 0) {
    if (linear.dtype == DType::kF16) {
      return lowering.Unsupported(
          linear.node, "the HTP has no products of f16 and weights in blocks");
    }
    return RequireFor(lowering, linear.node, Feature::kBlockWeights);
  }
  if (linear.w.encoding && linear.w.encoding->dtype == DType::kI16) {
    return RequireFor(lowering, linear.node, Feature::k16BitWeights);
  }
  return OkStatus();
}

// f16 weights make an f16 product.
DType LinearArithmetic(const GraphLowering& lowering, const ir::Node& node,
                       const ir::Constant& w) {
  const bool half = w.encoding && w.encoding->dtype == DType::kF16;
  return half ? DType::kF16 : lowering.ArithmeticOf(node);
}

Result<TensorId> Bias(GraphLowering& lowering, const LinearNode& linear,
                      TensorId x) {
  HX_ASSIGN_OR_RETURN(const ir::Constant* bias,
                      lowering.ConstantOf(linear.node, 2));
  if (linear.dtype == DType::kF16) {
    HX_ASSIGN_OR_RETURN(
        StaticTensor made,
        MakeHalfBias(*bias, lowering.FactorOf(linear.node.output)));
    return lowering.Static(linear.node, ".bias", std::move(made));
  }
  const float x_scale = lowering.SpecOf(x).encoding->scales[0];
  HX_ASSIGN_OR_RETURN(
      StaticTensor made,
      MakeBias(*bias, {.x_scale = static_cast<double>(x_scale),
                       .w = linear.w,
                       .factor = lowering.FactorOf(linear.node.output)}));
  return lowering.Static(linear.node, ".bias", std::move(made));
}

// x[1,1,T,K] with zeros behind, up to `channels`: as many as the filter has.
Result<TensorId> Padded(GraphLowering& lowering, const ir::Node& node,
                        TensorId x, int64_t channels) {
  TensorSpec spec = lowering.SpecOf(x);
  if (spec.shape[3] == channels) return x;
  const ir::Encoding encoding = EncodingOfSpec(spec);
  Shape dims = spec.shape;
  spec.use = TensorUse::kStatic;
  spec.shape[3] = channels - spec.shape[3];
  dims[3] = channels;
  HX_ASSIGN_OR_RETURN(
      const TensorId behind,
      lowering.Static(node, ".zeros", MakeZeros(std::move(spec))));
  return lowering.EmitInner(
      node,
      {.suffix = ".padded", .dims = std::move(dims), .encoding = encoding},
      {.op = "Concat",
       .inputs = {x, behind},
       .params = {{"axis", uint32_t{3}}}});
}

// QAIRT 2.51 gets products of u16 codes wrong in steps of just these rows, laid
// out as [1,1,16,K] (linear_blocks_test.cc); as [1,2,8,K] they are right.
constexpr int64_t kWrongRows = 16;

bool IsWrong(const LinearNode& linear, const Shape& dims) {
  return linear.dtype == DType::kU16 && dims[2] == kWrongRows;
}

// The same rows in two of the dimensions that a Conv2d has for them.
Result<TensorId> Folded(GraphLowering& lowering, const ir::Node& node,
                        TensorId x) {
  const TensorSpec& spec = lowering.SpecOf(x);
  return lowering.EmitInner(node,
                            {.suffix = ".folded",
                             .dims = {1, 2, kWrongRows / 2, spec.shape[3]},
                             .encoding = EncodingOfSpec(spec)},
                            {.op = "Reshape", .inputs = {x}});
}

// Adds the Conv2d, folded where it has to be.
Status EmitConv(GraphLowering& lowering, const LinearNode& linear,
                NodeDraft conv) {
  const ir::Node& node = linear.node;
  const Shape dims = Rank4(lowering.shape(node.output));
  if (!IsWrong(linear, dims))
    return lowering.EmitOutput(node, linear.dtype, {.dims = dims},
                               std::move(conv));
  HX_ASSIGN_OR_RETURN(conv.inputs[0], Folded(lowering, node, conv.inputs[0]));
  HX_ASSIGN_OR_RETURN(
      const TensorId y,
      lowering.EmitInner(node,
                         {.suffix = ".rows",
                          .dims = {1, 2, kWrongRows / 2, dims[3]},
                          .encoding = lowering.EncodingOf(node.output)},
                         std::move(conv)));
  return lowering.EmitOutput(node, linear.dtype, {.dims = dims},
                             {.op = "Reshape", .inputs = {y}});
}

std::vector<NodeParam> ConvParams() {
  return {{"stride", ArrayParam<uint32_t>{.shape = {2}, .values = {1, 1}}},
          {"pad_amount",
           ArrayParam<uint32_t>{.shape = {2, 2}, .values = {0, 0, 0, 0}}}};
}

}  // namespace

Status EmitLinear(GraphLowering& lowering, const ir::Node& node) {
  HX_ASSIGN_OR_RETURN(const ir::Constant* w, lowering.ConstantOf(node, 1));
  const LinearNode linear{
      .node = node, .w = *w, .dtype = LinearArithmetic(lowering, node, *w)};
  HX_RETURN_IF_ERROR(CheckFeatures(lowering, linear));
  HX_ASSIGN_OR_RETURN(StaticTensor filter,
                      MakeFilter(*w, lowering.FactorOf(node.output)));
  HX_ASSIGN_OR_RETURN(const TensorId own,
                      lowering.Input(node, 0, linear.dtype));
  HX_ASSIGN_OR_RETURN(const TensorId x,
                      Padded(lowering, node, own, filter.spec.shape[2]));
  HX_ASSIGN_OR_RETURN(const TensorId weight,
                      lowering.Static(node, ".weight", std::move(filter)));
  NodeDraft conv{.op = "Conv2d", .inputs = {x, weight}, .params = ConvParams()};
  if (node.inputs.size() > 2) {
    HX_ASSIGN_OR_RETURN(const TensorId bias, Bias(lowering, linear, x));
    conv.inputs.push_back(bias);
  }
  return EmitConv(lowering, linear, std::move(conv));
}

}  // namespace hexllm::htp

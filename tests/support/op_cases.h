// One-op graphs for conformance tests: every op of the IR in the shapes and
// weight types that matter to a backend.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/dequantize.h"
#include "ir/graph.h"
#include "ir/pseudo_random.h"
#include "tests/support/ir_tensors.h"

namespace hexllm::testing {

// What an input of the op is.
enum class InputKind { kActivation, kToken, kMask, kWeight };

struct InputSpec {
  InputKind kind = InputKind::kActivation;
  Shape shape;
  DType dtype = DType::kF32;  // of weights
};

struct OpCase {
  std::string name;
  ir::OpKind op;
  std::vector<InputSpec> inputs;
  ir::Attrs attrs = {};
  int64_t context_tokens = 0;  // 0: as many as step tokens
};

inline InputSpec Act(Shape shape) {
  return {.kind = InputKind::kActivation, .shape = std::move(shape)};
}
inline InputSpec Const(DType dtype, Shape shape) {
  return {
      .kind = InputKind::kWeight, .shape = std::move(shape), .dtype = dtype};
}

// A module of one graph with the op of `op_case`; its output is a tap.
inline ir::Module MakeOpModule(const OpCase& op_case) {
  ir::Module module;
  ir::Graph& graph = module.graphs.emplace_back();
  graph.name = op_case.name;
  graph.step_tokens = op_case.inputs[0].shape[0];
  graph.context_tokens = std::max(graph.step_tokens, op_case.context_tokens);
  std::vector<ir::ValueId> inputs;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    const InputSpec& spec = op_case.inputs[i];
    const auto index = static_cast<int32_t>(i);
    if (spec.kind == InputKind::kWeight) {
      const ir::ConstantId id = module.constants.Add(
          ir::MakeRandomConstant(op_case.name + std::to_string(i),
                                 {.dtype = spec.dtype, .shape = spec.shape}));
      inputs.push_back(graph.AddConstant(id, module.constants[id]));
    } else if (spec.kind == InputKind::kToken) {
      inputs.push_back(
          graph.AddInput({.kind = RoleKind::kToken},
                         {.dtype = DType::kI32, .shape = spec.shape}));
    } else {
      inputs.push_back(graph.AddInput(
          {.kind = RoleKind::kEmbedding, .index = index}, F32Type(spec.shape)));
    }
  }
  graph.AddOutput({.kind = RoleKind::kTap, .index = 0, .name = "out"},
                  graph.AddNode(op_case.op, inputs, op_case.attrs, "node"));
  return module;
}

// Values for the graph inputs of MakeOpModule(op_case). Tokens are below 5; of
// a mask's row, a third is hidden, and all of the first.
inline std::vector<ir::HostTensor> MakeOpInputs(const OpCase& op_case) {
  ir::PseudoRandom random(op_case.name);
  std::vector<ir::HostTensor> out;
  for (const InputSpec& spec : op_case.inputs) {
    if (spec.kind == InputKind::kWeight) continue;
    if (spec.kind == InputKind::kToken) {
      out.push_back(I32(spec.shape, {}));
      for (int64_t i = 0; i < spec.shape[0]; ++i) {
        out.back().ints.push_back(static_cast<int64_t>(random.Below(5)));
      }
      continue;
    }
    out.push_back(RandomF32(spec.shape, random));
    if (spec.kind != InputKind::kMask) continue;
    for (size_t i = 0; i < out.back().floats.size(); ++i) {
      const bool hidden =
          i < static_cast<size_t>(spec.shape[1]) || random.Below(3) == 0;
      out.back().floats[i] =
          hidden ? -std::numeric_limits<float>::infinity() : 0.0f;
    }
  }
  return out;
}

namespace cases {

inline std::string Name(std::string_view op, const Shape& shape,
                        DType dtype = DType::kF32) {
  return std::string(op) + ShapeToString(shape) + std::string(DTypeName(dtype));
}

// Weight types of matmul and embedding.
inline std::vector<DType> WeightTypes() {
  std::vector<DType> types;
  for (const DTypeInfo& info : AllDTypes()) {
    if (IsFloatLike(info.dtype)) types.push_back(info.dtype);
  }
  return types;
}

inline std::vector<OpCase> Embedding() {
  std::vector<OpCase> out;
  for (const DType dtype : WeightTypes()) {
    const InputSpec token{.kind = InputKind::kToken, .shape = {6}};
    const Shape table{5, 256};
    out.push_back({.name = Name("embedding", table, dtype),
                   .op = ir::OpKind::kEmbedding,
                   .inputs = {token, Const(dtype, table)}});
  }
  return out;
}

// x[T,K], w[N,K], with bias, with a residual, with both.
inline std::vector<OpCase> MatMul(ir::OpKind op) {
  std::vector<OpCase> out;
  for (const DType dtype : WeightTypes()) {
    // The CPU has no kernel for f64; see the list of unsupported cases.
    if (dtype == DType::kF64) continue;
    const int64_t block = GetDTypeInfo(dtype).block_elems;
    for (const Shape& tkn : std::vector<Shape>{
             {1, 256, 1}, {3, 512, 33}, {13, 2 * block, 16}, {2, block, 70}}) {
      for (const bool bias : {false, true}) {
        OpCase made{
            .name = Name(bias ? "matmul_bias" : "matmul", tkn, dtype),
            .op = op,
            .inputs = {Act({tkn[0], tkn[1]}), Const(dtype, {tkn[2], tkn[1]})}};
        if (op == ir::OpKind::kLinearAdd) {
          made.inputs.push_back(Act({tkn[0], tkn[2]}));
        }
        if (bias) made.inputs.push_back(Const(DType::kF16, {tkn[2]}));
        out.push_back(std::move(made));
      }
    }
  }
  return out;
}

inline std::vector<OpCase> RmsNorm() {
  std::vector<OpCase> out;
  for (const Shape& shape :
       std::vector<Shape>{{1, 64}, {5, 17}, {4, 3, 32}, {7, 576}}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const double offset : {0.0, 1.0}) {
        out.push_back(
            {.name = Name(offset == 0 ? "rms_norm" : "rms_norm1", shape, dtype),
             .op = ir::OpKind::kRmsNorm,
             .inputs = {Act(shape), Const(dtype, {shape.back()})},
             .attrs = {{ir::AttrName::kEps, 1e-6},
                       {ir::AttrName::kWeightOffset, offset}}});
      }
    }
  }
  return out;
}

inline std::vector<OpCase> LayerNorm() {
  std::vector<OpCase> out;
  for (const Shape& shape :
       std::vector<Shape>{{1, 64}, {5, 17}, {4, 3, 32}, {7, 576}}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const InputSpec vector = Const(dtype, {shape.back()});
      out.push_back({.name = Name("layer_norm", shape, dtype),
                     .op = ir::OpKind::kLayerNorm,
                     .inputs = {Act(shape), vector, vector},
                     .attrs = {{ir::AttrName::kEps, 1e-5}}});
    }
  }
  return out;
}

// [T,H,D] and R/2.
inline std::vector<OpCase> Rope() {
  std::vector<OpCase> out;
  for (const Shape& s :
       std::vector<Shape>{{1, 3, 64, 32}, {5, 1, 8, 4}, {4, 2, 20, 3}}) {
    const InputSpec table = Act({s[0], s[3]});
    out.push_back({.name = Name("rope", s),
                   .op = ir::OpKind::kRope,
                   .inputs = {Act({s[0], s[1], s[2]}), table, table}});
  }
  return out;
}

// [T,H,G,D,P].
inline std::vector<OpCase> Attention() {
  std::vector<OpCase> out;
  for (const Shape& s : std::vector<Shape>{{1, 4, 2, 16, 33},
                                           {5, 2, 2, 8, 0},
                                           {4, 6, 1, 20, 12},
                                           {17, 9, 3, 64, 47}}) {
    for (const double softcap : {0.0, 3.0}) {
      const int64_t context = s[0] + s[4];
      out.push_back(
          {.name = Name(softcap > 0 ? "attention_cap" : "attention", s),
           .op = ir::OpKind::kAttention,
           .inputs = {Act({s[0], s[1], s[3]}),
                      Act({s[2], s[3], s[4]}),
                      Act({s[2], s[4], s[3]}),
                      Act({s[2], s[3], s[0]}),
                      Act({s[2], s[0], s[3]}),
                      {.kind = InputKind::kMask, .shape = {s[0], context}}},
           .attrs = {{ir::AttrName::kScale, 0.7},
                     {ir::AttrName::kSoftcap, softcap}},
           .context_tokens = context});
    }
  }
  return out;
}

inline OpCase Transpose(Shape shape, Shape perm) {
  return {.name = Name("transpose" + ShapeToString(perm), shape),
          .op = ir::OpKind::kTranspose,
          .inputs = {Act(std::move(shape))},
          .attrs = {{ir::AttrName::kPerm, std::move(perm)}}};
}

inline std::vector<OpCase> Transposes() {
  std::vector<OpCase> out;
  for (const Shape& shape :
       std::vector<Shape>{{1, 2, 8}, {6, 1, 8}, {5, 3, 20}}) {
    for (const Shape& perm : std::vector<Shape>{{1, 2, 0}, {1, 0, 2}}) {
      out.push_back(Transpose(shape, perm));
    }
  }
  return out;
}

inline std::vector<OpCase> Reshape() {
  return {{.name = "reshape",
           .op = ir::OpKind::kReshape,
           .inputs = {Act({3, 8})},
           .attrs = {{ir::AttrName::kShape, Shape{3, 2, 4}}}}};
}

inline std::vector<OpCase> SliceRows() {
  std::vector<OpCase> out;
  for (const Shape& range : std::vector<Shape>{{0, 5}, {4, 1}, {1, 3}}) {
    out.push_back({.name = Name("slice_rows", range),
                   .op = ir::OpKind::kSliceRows,
                   .inputs = {Act({5, 3, 7})},
                   .attrs = {{ir::AttrName::kBegin, range[0]},
                             {ir::AttrName::kCount, range[1]}}});
  }
  return out;
}

// Ops that work element by element on `inputs` tensors of one shape.
inline std::vector<OpCase> ElementWise(ir::OpKind op, size_t inputs,
                                       const std::vector<ir::Attrs>& attrs) {
  std::vector<OpCase> out;
  for (const Shape& shape : std::vector<Shape>{{1, 1}, {4, 3, 16}, {3, 37}}) {
    for (size_t i = 0; i < attrs.size(); ++i) {
      const std::string name =
          std::string(ir::GetOpInfo(op).name) + std::to_string(i);
      out.push_back({.name = Name(name, shape),
                     .op = op,
                     .inputs = std::vector<InputSpec>(inputs, Act(shape)),
                     .attrs = attrs[i]});
    }
  }
  return out;
}

// [B,M,K,N].
inline std::vector<OpCase> BatchMatMul() {
  std::vector<OpCase> out;
  for (const Shape& s :
       std::vector<Shape>{{1, 1, 1, 1}, {2, 3, 8, 21}, {3, 12, 64, 40}}) {
    out.push_back({.name = Name("matmul", s),
                   .op = ir::OpKind::kMatMul,
                   .inputs = {Act({s[0], s[1], s[2]}), Act({s[0], s[2], s[3]})},
                   .attrs = {{ir::AttrName::kScale, 0.125}}});
  }
  return out;
}

// Past columns and new ones, along the last axis and the one before.
inline std::vector<OpCase> Concat() {
  std::vector<OpCase> out;
  for (const int64_t past : {0, 1, 13}) {
    out.push_back({.name = Name("concat_columns", {past}),
                   .op = ir::OpKind::kConcat,
                   .inputs = {Act({2, 8, past}), Act({2, 8, 3})},
                   .attrs = {{ir::AttrName::kAxis, int64_t{2}}}});
    out.push_back({.name = Name("concat_rows", {past}),
                   .op = ir::OpKind::kConcat,
                   .inputs = {Act({2, past, 8}), Act({2, 3, 8})},
                   .attrs = {{ir::AttrName::kAxis, int64_t{1}}}});
  }
  return out;
}

// add of b to every part of a that has its shape.
inline std::vector<OpCase> Broadcasts() {
  std::vector<OpCase> out = ElementWise(ir::OpKind::kAdd, 2, {{}});
  out.push_back({.name = "add_mask",
                 .op = ir::OpKind::kAdd,
                 .inputs = {Act({2, 3, 5, 9}), Act({5, 9})}});
  return out;
}

}  // namespace cases

// The cases of one op; none = somebody added an op and no case.
inline std::vector<OpCase> CasesOf(ir::OpKind op) {
  using ir::AttrName;
  using ir::OpKind;
  switch (op) {
    case OpKind::kEmbedding:
      return cases::Embedding();
    case OpKind::kLinear:
    case OpKind::kLinearAdd:
      return cases::MatMul(op);
    case OpKind::kRmsNorm:
      return cases::RmsNorm();
    case OpKind::kLayerNorm:
      return cases::LayerNorm();
    case OpKind::kRope:
      return cases::Rope();
    case OpKind::kAttention:
      return cases::Attention();
    case OpKind::kReshape:
      return cases::Reshape();
    case OpKind::kTranspose:
      return cases::Transposes();
    case OpKind::kSliceRows:
      return cases::SliceRows();
    case OpKind::kAdd:
      return cases::Broadcasts();
    case OpKind::kMul:
      return cases::ElementWise(op, 2, {{}});
    case OpKind::kScale:
      return cases::ElementWise(op, 1, {{{AttrName::kFactor, 0.3}}});
    case OpKind::kSilu:
    case OpKind::kSoftmax:
    case OpKind::kConvert:
      return cases::ElementWise(op, 1, {{}});
    case OpKind::kMatMul:
      return cases::BatchMatMul();
    case OpKind::kConcat:
      return cases::Concat();
    case OpKind::kGelu:
      return cases::ElementWise(op, 1,
                                {{{AttrName::kApproximate, int64_t{0}}},
                                 {{AttrName::kApproximate, int64_t{1}}}});
    case OpKind::kSoftcap:
      return cases::ElementWise(op, 1, {{{AttrName::kCap, 0.8}}});
    case OpKind::kGatedMul:
      return cases::ElementWise(op, 2,
                                {{{AttrName::kActivation, int64_t{0}}},
                                 {{AttrName::kActivation, int64_t{1}}},
                                 {{AttrName::kActivation, int64_t{2}}}});
  }
  return {};
}

}  // namespace hexllm::testing

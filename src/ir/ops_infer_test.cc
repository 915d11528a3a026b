// What each op refuses. A new op without a refusal fails
// InferTest.EveryOpRefusesSomething.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/ops.h"
#include "tests/support/ir_tensors.h"

namespace hexllm::ir {
namespace {

using ::testing::HasSubstr;

struct BadCase {
  OpKind op;
  std::vector<TensorType> inputs;
  Attrs attrs;
  std::string message;
};

TensorType F(Shape shape) {
  return {.dtype = DType::kF32, .shape = std::move(shape)};
}
TensorType Of(DType dtype, Shape shape) {
  return {.dtype = dtype, .shape = std::move(shape)};
}

Attrs One(AttrName name, AttrValue value) { return {{name, std::move(value)}}; }

Attrs Rows(int64_t begin, int64_t count) {
  return {{AttrName::kBegin, begin}, {AttrName::kCount, count}};
}

Attrs NormAttrs(double eps) {
  return {{AttrName::kEps, eps}, {AttrName::kWeightOffset, 0.0}};
}

Attrs AttentionAttrs(double softcap) {
  return {{AttrName::kScale, 1.0}, {AttrName::kSoftcap, softcap}};
}

// q, k_past, v_past, k_new, v_new, mask of T=2, C=5, H=4, G=2, D=8; with input
// `index` replaced.
std::vector<TensorType> AttentionInputs(size_t index, TensorType type) {
  std::vector<TensorType> types = {F({2, 4, 8}), F({2, 8, 3}), F({2, 3, 8}),
                                   F({2, 8, 2}), F({2, 2, 8}), F({2, 5})};
  types[index] = std::move(type);
  return types;
}

std::vector<BadCase> MatrixCases() {
  return {
      {OpKind::kEmbedding,
       {F({2}), F({3, 4})},
       {},
       "token: expected i32[T], found f32[2]"},
      {OpKind::kEmbedding,
       {Of(DType::kI32, {2}), F({3})},
       {},
       "table: expected float-like [V,M], found f32[3]"},
      {OpKind::kLinear,
       {F({2, 3}), F({4, 5})},
       {},
       "w: expected float-like [N,K] with K=3, found f32[4,5]"},
      {OpKind::kLinear,
       {F({2, 3}), Of(DType::kI8, {4, 3})},
       {},
       "found i8[4,3]"},
      {OpKind::kLinear,
       {Of(DType::kF16, {2, 3}), F({4, 3})},
       {},
       "x: expected f32[T,K], found f16[2,3]"},
      {OpKind::kLinear,
       {F({2, 3}), F({4, 3}), F({5})},
       {},
       "bias: expected float-like [N] with N=4"},
      {OpKind::kLinear, {F({2, 3}), F({0, 3})}, {}, "found f32[0,3]"},
      {OpKind::kLinear, {F({2, 3})}, {}, "expected 2 to 3 inputs, found 1"},
      {OpKind::kLinear,
       {F({2, 3}), F({4, 3}), F({4}), F({4})},
       {},
       "expected 2 to 3 inputs, found 4"},
      {OpKind::kLinear,
       {F({2, 3}), F({4, 3})},
       One(AttrName::kFactor, 1.0),
       "linear: expected 0 attributes, found 1"},
      {OpKind::kLinear,
       {F({int64_t{1} << 40, 1}), F({int64_t{1} << 40, 1})},
       {},
       "too large"},
      {OpKind::kLinearAdd,
       {F({2, 3}), F({4, 3}), F({2, 5})},
       {},
       "residual: expected f32[T,N] with T=2, N=4"},
      {OpKind::kLinearAdd,
       {F({2, 3}), F({4, 3}), F({2, 4}), F({3})},
       {},
       "bias:"},
      {OpKind::kRmsNorm,
       {F({2, 3}), F({4})},
       NormAttrs(1e-5),
       "w: expected float-like [M] with M=3"},
      {OpKind::kRmsNorm,
       {F({}), F({4})},
       NormAttrs(1e-5),
       "x: expected f32[..,M], found f32[]"},
      {OpKind::kRmsNorm, {F({2, 3}), F({3})}, NormAttrs(-1), "attribute eps"},
      {OpKind::kRmsNorm,
       {F({2, 3}), F({3})},
       {{AttrName::kWeightOffset, 0.0}, {AttrName::kEps, 1e-5}},
       "attribute 0: expected eps, found weight_offset"},
      {OpKind::kRmsNorm,
       {F({2, 3}), F({3})},
       {{AttrName::kEps, int64_t{0}}, {AttrName::kWeightOffset, 0.0}},
       "attribute eps: expected a finite number"},
      {OpKind::kLayerNorm,
       {F({2, 3}), F({3}), F({4})},
       One(AttrName::kEps, 1e-5),
       "bias: expected float-like [M] with M=3"},
      {OpKind::kLayerNorm,
       {F({2, 3}), F({3}), F({3})},
       One(AttrName::kEps, -1.0),
       "attribute eps"},
  };
}

std::vector<BadCase> AttentionCases() {
  return {
      {OpKind::kRope, {F({2, 4, 8}), F({2, 5}), F({2, 5})}, {}, "R <= D"},
      {OpKind::kRope,
       {F({2, 4, 8}), F({2, 4}), F({2, 3})},
       {},
       "sin: expected f32[T,R/2] with T=2, R/2=4"},
      {OpKind::kRope, {F({2, 4, 8}), F({3, 4}), F({3, 4})}, {}, "cos:"},
      {OpKind::kAttention, AttentionInputs(0, F({2, 3, 8})), AttentionAttrs(0),
       "q: expected a multiple of G=2 heads"},
      {OpKind::kAttention, AttentionInputs(1, F({2, 3, 8})), AttentionAttrs(0),
       "k_past:"},
      {OpKind::kAttention, AttentionInputs(2, F({2, 4, 8})), AttentionAttrs(0),
       "v_past:"},
      {OpKind::kAttention, AttentionInputs(3, F({2, 8, 3})), AttentionAttrs(0),
       "k_new:"},
      {OpKind::kAttention, AttentionInputs(4, F({1, 2, 8})), AttentionAttrs(0),
       "v_new:"},
      {OpKind::kAttention, AttentionInputs(5, F({2, 6})), AttentionAttrs(0),
       "mask: expected [T,P+T] with T=2, P=3"},
      {OpKind::kAttention, AttentionInputs(5, F({2, 1})), AttentionAttrs(0),
       "mask: expected [T,P+T]"},
      {OpKind::kAttention, AttentionInputs(5, F({2, 5})), AttentionAttrs(-1),
       "attribute softcap"},
  };
}

std::vector<BadCase> MovementCases() {
  return {
      {OpKind::kReshape,
       {F({2, 3})},
       One(AttrName::kShape, Shape{7}),
       "as many elements as f32[2,3], found [7]"},
      {OpKind::kReshape,
       {F({2, 3})},
       One(AttrName::kShape, Shape{-2, -3}),
       "found [-2,-3]"},
      {OpKind::kReshape,
       {F({2, 3})},
       One(AttrName::kShape, Shape{INT64_MAX, 3}),
       "attribute shape"},
      {OpKind::kReshape, {F({2, 3})}, {}, "expected 1 attributes, found 0"},
      {OpKind::kTranspose,
       {F({2, 3})},
       One(AttrName::kPerm, Shape{0, 0}),
       "each axis of f32[2,3] once, found [0,0]"},
      {OpKind::kTranspose,
       {F({2, 3})},
       One(AttrName::kPerm, Shape{0}),
       "attribute perm"},
      {OpKind::kTranspose,
       {F({2, 3})},
       One(AttrName::kPerm, Shape{0, 2}),
       "attribute perm"},
      {OpKind::kTranspose,
       {F({2, 3})},
       One(AttrName::kPerm, Shape{0, -1}),
       "attribute perm"},
      {OpKind::kTranspose,
       {F({2, 3})},
       One(AttrName::kPerm, int64_t{1}),
       "expected a list of integers"},
      {OpKind::kSliceRows, {F({4, 3})}, Rows(3, 2), "found 2 rows from 3"},
      {OpKind::kSliceRows, {F({4, 3})}, Rows(-1, 2), "attributes begin, count"},
      {OpKind::kSliceRows, {F({4, 3})}, Rows(0, 0), "attributes begin, count"},
      {OpKind::kSliceRows,
       {F({4, 3})},
       Rows(INT64_MAX, 1),
       "attributes begin, count"},
      {OpKind::kSliceRows, {F({})}, Rows(0, 1), "attributes begin, count"},
  };
}

std::vector<BadCase> ElementwiseCases() {
  const double inf = std::numeric_limits<double>::infinity();
  return {
      {OpKind::kAdd,
       {F({2, 3}), F({2})},
       {},
       "b: expected f32[2,3] as a or its last axes, found f32[2]"},
      {OpKind::kAdd, {F({3}), F({2, 3})}, {}, "b: expected f32[3] as a"},
      {OpKind::kAdd, {F({2, 3}), F({2, 1})}, {}, "b: expected f32[2,3] as a"},
      {OpKind::kMul, {F({2, 3}), F({2, 1})}, {}, "b: expected f32[2,3] as a"},
      {OpKind::kScale,
       {Of(DType::kI32, {2})},
       One(AttrName::kFactor, 1.0),
       "x: expected f32"},
      {OpKind::kScale,
       {F({2})},
       One(AttrName::kFactor, inf),
       "attribute factor: expected a finite number"},
      {OpKind::kSilu, {Of(DType::kF16, {2})}, {}, "x: expected f32"},
      {OpKind::kGelu,
       {F({2})},
       One(AttrName::kApproximate, int64_t{2}),
       "attribute approximate"},
      {OpKind::kGelu,
       {F({2})},
       One(AttrName::kApproximate, 1.0),
       "expected an integer"},
      {OpKind::kSoftcap, {F({2})}, One(AttrName::kCap, 0.0), "attribute cap"},
      {OpKind::kGatedMul,
       {F({2}), F({3})},
       One(AttrName::kActivation, int64_t{0}),
       "b: expected f32[2]"},
      {OpKind::kGatedMul,
       {F({2}), F({2})},
       One(AttrName::kActivation, int64_t{3}),
       "attribute activation"},
  };
}

std::vector<BadCase> LoweredCases() {
  const auto axis = [](int64_t at) { return One(AttrName::kAxis, at); };
  return {
      {OpKind::kMatMul,
       {F({2, 3, 4}), F({2, 5, 4})},
       One(AttrName::kScale, 1.0),
       "b: expected f32[B,K,N] with B=2, K=4, found f32[2,5,4]"},
      {OpKind::kMatMul,
       {F({2, 3, 4}), F({1, 4, 5})},
       One(AttrName::kScale, 1.0),
       "found f32[1,4,5]"},
      {OpKind::kMatMul,
       {F({3, 4}), F({4, 5})},
       One(AttrName::kScale, 1.0),
       "a: expected f32[B,M,K], found f32[3,4]"},
      {OpKind::kMatMul,
       {F({2, 3, 4}), F({2, 4, 0})},
       One(AttrName::kScale, 1.0),
       "found f32[2,4,0]"},
      {OpKind::kMatMul,
       {F({2, 3, 4}), F({2, 4, 5})},
       {},
       "expected 1 attributes"},
      {OpKind::kConcat,
       {F({2, 3}), F({3, 3})},
       axis(1),
       "b: expected f32[2,3] as a but for axis 1, found f32[3,3]"},
      {OpKind::kConcat, {F({2, 3}), F({3})}, axis(0), "b: expected f32[2,3]"},
      {OpKind::kConcat, {F({2, 3}), F({2, 3})}, axis(2), "attribute axis"},
      {OpKind::kConcat, {F({2, 3}), F({2, 3})}, axis(-1), "attribute axis"},
      {OpKind::kConcat, {F({}), F({})}, axis(0), "attribute axis"},
      {OpKind::kConcat,
       {F({INT64_MAX, 0}), F({INT64_MAX, 0})},
       axis(0),
       "b: expected"},
      {OpKind::kSoftmax, {F({})}, {}, "x: expected f32[..,C], found f32[]"},
      {OpKind::kSoftmax, {F({2, 0})}, {}, "found f32[2,0]"},
      {OpKind::kConvert, {Of(DType::kF16, {2})}, {}, "x: expected f32"},
  };
}

std::vector<BadCase> OptionalAttributeCases() {
  return {
      {OpKind::kLinear,
       {F({2, 3}), F({4, 3})},
       {{AttrName::kDroppedBits, int64_t{8}}, {AttrName::kFactor, 1.0}},
       "expected 1 attributes, found 2"},
      {OpKind::kLinear,
       {F({2, 3}), F({4, 3})},
       One(AttrName::kDroppedBits, int64_t{32}),
       "dropped_bits: expected 1 to 31, found 32"},
      {OpKind::kConvert,
       {F({2, 3})},
       One(AttrName::kFixedPoint, int64_t{0}),
       "fixed_point: expected 1 to 1, found 0"},
  };
}

std::vector<BadCase> AllBadCases() {
  std::vector<BadCase> cases;
  for (auto* make :
       {&MatrixCases, &AttentionCases, &MovementCases, &ElementwiseCases,
        &LoweredCases, &OptionalAttributeCases}) {
    for (BadCase& bad : make()) cases.push_back(std::move(bad));
  }
  return cases;
}

TEST(InferTest, RefusesWithTheReason) {
  for (const BadCase& bad : AllBadCases()) {
    const std::string_view name = GetOpInfo(bad.op).name;
    SCOPED_TRACE(std::string(name) + ": " + bad.message);
    std::vector<const TensorType*> types;
    for (const TensorType& type : bad.inputs) types.push_back(&type);
    const auto result =
        InferType(bad.op, {.inputs = types, .attrs = bad.attrs});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(result.error().message,
                ::testing::StartsWith(std::string(name) + ": "));
    EXPECT_THAT(result.error().message, HasSubstr(bad.message));
  }
}

TEST(InferTest, EveryOpRefusesSomething) {
  std::set<OpKind> covered;
  for (const BadCase& bad : AllBadCases()) covered.insert(bad.op);
  for (const OpInfo& info : AllOps()) {
    EXPECT_TRUE(covered.contains(info.kind))
        << info.name << " has no refusal in ops_infer_test.cc";
  }
}

TEST(InferTest, AttentionTakesAnEmptyPast) {
  const std::vector<TensorType> inputs = {F({2, 4, 8}), F({2, 8, 0}),
                                          F({2, 0, 8}), F({2, 8, 2}),
                                          F({2, 2, 8}), F({2, 2})};
  std::vector<const TensorType*> types;
  for (const TensorType& type : inputs) types.push_back(&type);
  const Attrs attrs = AttentionAttrs(0);
  const auto result =
      InferType(OpKind::kAttention, {.inputs = types, .attrs = attrs});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(*result, F({2, 4, 8}));
}

}  // namespace
}  // namespace hexllm::ir

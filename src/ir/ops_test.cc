// What each op computes, on cases worked out by hand. A new op without a case
// fails OpsTest.EveryOpHasCases.
#include "ir/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "tests/support/ir_tensors.h"

namespace hexllm::ir {
namespace {

using testing::ExpectTensor;
using testing::F32;
using testing::I32;
using testing::RunOp;

constexpr float kHidden = -std::numeric_limits<float>::infinity();

struct OpCase {
  OpKind op;
  std::string name;
  std::vector<HostTensor> inputs;
  Attrs attrs;
  HostTensor expected;
};

const Attrs kNoAttrs = {};

Attrs NormAttrs(double eps, double weight_offset) {
  return {{AttrName::kEps, eps}, {AttrName::kWeightOffset, weight_offset}};
}

Attrs AttentionAttrs(double scale, double softcap) {
  return {{AttrName::kScale, scale}, {AttrName::kSoftcap, softcap}};
}

Attrs One(AttrName name, AttrValue value) { return {{name, std::move(value)}}; }

// Stored as `dtype`; the interpreter sees the widened values.
HostTensor Stored(DType dtype, Shape shape, std::vector<float> values) {
  HostTensor tensor = F32(std::move(shape), std::move(values));
  tensor.type.dtype = dtype;
  return tensor;
}

std::vector<OpCase> MatrixCases() {
  const HostTensor x = F32({2, 2}, {1, 2, 3, 4});
  const HostTensor w = Stored(DType::kF16, {3, 2}, {1, 0, 0, 1, 1, 1});
  const HostTensor bias = F32({3}, {10, 20, 30});
  const HostTensor residual = F32({2, 3}, {100, 200, 300, 400, 500, 600});
  return {
      {OpKind::kEmbedding,
       "rows of the table",
       {I32({2}, {2, 0}), Stored(DType::kBF16, {3, 2}, {1, 2, 3, 4, 5, 6})},
       kNoAttrs,
       F32({2, 2}, {5, 6, 1, 2})},
      {OpKind::kLinear,
       "no bias",
       {x, w},
       kNoAttrs,
       F32({2, 3}, {1, 2, 3, 3, 4, 7})},
      {OpKind::kLinear,
       "bias",
       {x, w, bias},
       kNoAttrs,
       F32({2, 3}, {11, 22, 33, 13, 24, 37})},
      {OpKind::kLinearAdd,
       "no bias",
       {x, w, residual},
       kNoAttrs,
       F32({2, 3}, {101, 202, 303, 403, 504, 607})},
      {OpKind::kLinearAdd,
       "bias",
       {x, w, residual, bias},
       kNoAttrs,
       F32({2, 3}, {111, 222, 333, 413, 524, 637})},
  };
}

std::vector<OpCase> NormAndRopeCases() {
  // mean of squares 12.5, root 3.5355339
  return {
      {OpKind::kRmsNorm,
       "plain",
       {F32({1, 2}, {3, 4}), F32({2}, {1, 2})},
       NormAttrs(0, 0),
       F32({1, 2}, {0.8485281f, 2.2627417f})},
      {OpKind::kRmsNorm,
       "weight offset",
       {F32({1, 2}, {3, 4}), F32({2}, {0, 1})},
       NormAttrs(0, 1),
       F32({1, 2}, {0.8485281f, 2.2627417f})},
      {OpKind::kRmsNorm,
       "eps keeps zero rows finite, rows are separate",
       {F32({2, 1, 2}, {0, 0, 1, 1}), F32({2}, {1, 1})},
       NormAttrs(3, 0),
       F32({2, 1, 2}, {0, 0, 0.5f, 0.5f})},
      // mean 4, squares 9 and 1, root sqrt(5)
      {OpKind::kLayerNorm,
       "centred, weighted, shifted; rows are separate",
       {F32({2, 4}, {1, 3, 5, 7, 2, 2, 2, 2}), F32({4}, {1, 1, 1, 2}),
        F32({4}, {0, 0, 10, 0})},
       {{AttrName::kEps, 1e-30}},
       F32({2, 4},
           {-1.3416408f, -0.4472136f, 10.4472136f, 2.6832816f, 0, 0, 10, 0})},
      {OpKind::kLayerNorm,
       "eps",
       {F32({1, 2}, {-1, 1}), F32({2}, {1, 1}), F32({2}, {0, 0})},
       {{AttrName::kEps, 3.0}},
       F32({1, 2}, {-0.5f, 0.5f})},
      {OpKind::kRope,
       "a quarter turn and none",
       {F32({1, 1, 4}, {1, 2, 3, 4}), F32({1, 2}, {0, 1}), F32({1, 2}, {1, 0})},
       kNoAttrs,
       F32({1, 1, 4}, {-3, 2, 1, 4})},
      {OpKind::kRope,
       "partial: the last element passes; each row has its angle, both heads "
       "share it",
       {F32({2, 2, 3}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}),
        F32({2, 1}, {0, -1}), F32({2, 1}, {1, 0})},
       kNoAttrs,
       F32({2, 2, 3}, {-2, 1, 3, -5, 4, 6, -1, -2, 3, -4, -5, 6})},
  };
}

std::vector<OpCase> AttentionCases() {
  const float log3 = std::log(3.0f);
  return {
      // Scores of head 0: 0 and ln 3, weights 1/4 and 3/4; head 1 has q = 0: a
      // plain mean.
      {OpKind::kAttention,
       "two query heads on one KV head",
       {F32({1, 2, 1}, {1, 0}), F32({1, 1, 1}, {0}), F32({1, 1, 1}, {10}),
        F32({1, 1, 1}, {2 * log3}), F32({1, 1, 1}, {20}), F32({1, 2}, {0, 0})},
       AttentionAttrs(0.5, 0),
       F32({1, 2, 1}, {17.5f, 15})},
      {OpKind::kAttention,
       "no past; a causal row, a row that sees nothing",
       {F32({2, 1, 1}, {1, 1}), F32({1, 1, 0}, {}), F32({1, 0, 1}, {}),
        F32({1, 1, 2}, {5, 6}), F32({1, 2, 1}, {7, 8}),
        F32({2, 2}, {0, kHidden, kHidden, kHidden})},
       AttentionAttrs(1, 0),
       F32({2, 1, 1}, {7, 0})},
      // Query heads 0,1 read KV head 0; 2,3 read KV head 1.
      {OpKind::kAttention,
       "grouped heads",
       {F32({1, 4, 1}, {1, 1, 1, 1}), F32({2, 1, 0}, {}), F32({2, 0, 1}, {}),
        F32({2, 1, 1}, {1, 1}), F32({2, 1, 1}, {3, 4}), F32({1, 1}, {0})},
       AttentionAttrs(1, 0),
       F32({1, 4, 1}, {3, 3, 4, 4})},
      // Scores 0 and 1000 become 0 and ln 3 under the cap.
      {OpKind::kAttention,
       "softcap before the mask",
       {F32({1, 1, 1}, {1}), F32({1, 1, 2}, {0, 1000}),
        F32({1, 2, 1}, {10, 20}), F32({1, 1, 1}, {1000}), F32({1, 1, 1}, {99}),
        F32({1, 3}, {0, 0, kHidden})},
       AttentionAttrs(1, static_cast<double>(log3)),
       F32({1, 1, 1}, {17.5f})},
  };
}

std::vector<OpCase> MovementCases() {
  const HostTensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  return {
      {OpKind::kReshape,
       "matrix",
       {x},
       One(AttrName::kShape, Shape{3, 2}),
       F32({3, 2}, {1, 2, 3, 4, 5, 6})},
      {OpKind::kTranspose,
       "matrix",
       {x},
       One(AttrName::kPerm, Shape{1, 0}),
       F32({3, 2}, {1, 4, 2, 5, 3, 6})},
      // [2,1,3] -> [3,2,1]: out[i,j,0] = x[j,0,i]
      {OpKind::kTranspose,
       "a rotation of axes",
       {F32({2, 1, 3}, {1, 2, 3, 4, 5, 6})},
       One(AttrName::kPerm, Shape{2, 0, 1}),
       F32({3, 2, 1}, {1, 4, 2, 5, 3, 6})},
      {OpKind::kSliceRows,
       "the last two rows",
       {F32({3, 1, 2}, {1, 2, 3, 4, 5, 6})},
       {{AttrName::kBegin, int64_t{1}}, {AttrName::kCount, int64_t{2}}},
       F32({2, 1, 2}, {3, 4, 5, 6})},
  };
}

std::vector<OpCase> ElementwiseCases() {
  const HostTensor a = F32({2}, {1, -1});
  const HostTensor b = F32({2}, {2, 3});
  return {
      {OpKind::kAdd, "", {a, b}, kNoAttrs, F32({2}, {3, 2})},
      {OpKind::kMul, "", {a, b}, kNoAttrs, F32({2}, {2, -3})},
      {OpKind::kScale,
       "",
       {a},
       One(AttrName::kFactor, 0.25),
       F32({2}, {0.25f, -0.25f})},
      {OpKind::kSilu, "", {a}, kNoAttrs, F32({2}, {0.73105858f, -0.26894142f})},
      {OpKind::kGelu,
       "erf",
       {a},
       One(AttrName::kApproximate, int64_t{0}),
       F32({2}, {0.84134475f, -0.15865525f})},
      {OpKind::kGelu,
       "tanh",
       {a},
       One(AttrName::kApproximate, int64_t{1}),
       F32({2}, {0.84119199f, -0.15880801f})},
      {OpKind::kSoftcap,
       "",
       {F32({2}, {1, 1000})},
       One(AttrName::kCap, 2.0),
       F32({2}, {0.92423431f, 2})},
      {OpKind::kGatedMul,
       "silu",
       {a, b},
       One(AttrName::kActivation, int64_t{0}),
       F32({2}, {1.46211716f, -0.80682426f})},
      {OpKind::kGatedMul,
       "tanh",
       {a, b},
       One(AttrName::kActivation, int64_t{1}),
       F32({2}, {1.68238399f, -0.47642403f})},
      {OpKind::kGatedMul,
       "erf",
       {a, b},
       One(AttrName::kActivation, int64_t{2}),
       F32({2}, {1.68268949f, -0.47596576f})},
  };
}

// What attention is taken apart into.
std::vector<OpCase> LoweredCases() {
  const HostTensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  return {
      {OpKind::kMatMul,
       "two matrices, scaled",
       {F32({2, 1, 2}, {1, 2, 3, 4}), F32({2, 2, 2}, {1, 0, 0, 1, 5, 6, 7, 8})},
       One(AttrName::kScale, 0.5),
       F32({2, 1, 2}, {0.5f, 1, 21.5f, 25})},
      {OpKind::kConcat,
       "rows",
       {x, F32({1, 3}, {7, 8, 9})},
       One(AttrName::kAxis, int64_t{0}),
       F32({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})},
      {OpKind::kConcat,
       "columns",
       {x, F32({2, 1}, {7, 8})},
       One(AttrName::kAxis, int64_t{1}),
       F32({2, 4}, {1, 2, 3, 7, 4, 5, 6, 8})},
      {OpKind::kConcat,
       "behind nothing",
       {F32({2, 0}, {}), x},
       One(AttrName::kAxis, int64_t{1}),
       x},
      {OpKind::kConcat,
       "nothing behind nothing",
       {F32({2, 0}, {}), F32({2, 0}, {})},
       One(AttrName::kAxis, int64_t{1}),
       F32({2, 0}, {})},
      // exp(0), exp(ln 3) = 1, 3.
      {OpKind::kSoftmax,
       "rows are separate; hidden columns; a row that sees nothing",
       {F32({3, 2}, {0, std::log(3.0f), 5, kHidden, kHidden, kHidden})},
       kNoAttrs,
       F32({3, 2}, {0.25f, 0.75f, 1, 0, 0, 0})},
      {OpKind::kConvert, "", {x}, kNoAttrs, x},
      {OpKind::kAdd,
       "the last axis to each row",
       {x, F32({3}, {10, 20, 30})},
       kNoAttrs,
       F32({2, 3}, {11, 22, 33, 14, 25, 36})},
      {OpKind::kAdd,
       "a matrix to each of two",
       {F32({2, 1, 2}, {1, 2, 3, 4}), F32({1, 2}, {10, 20})},
       kNoAttrs,
       F32({2, 1, 2}, {11, 22, 13, 24})},
  };
}

std::vector<OpCase> AllCases() {
  std::vector<OpCase> cases;
  for (auto* make : {&MatrixCases, &NormAndRopeCases, &AttentionCases,
                     &MovementCases, &ElementwiseCases, &LoweredCases}) {
    for (OpCase& op_case : make()) cases.push_back(std::move(op_case));
  }
  return cases;
}

TEST(OpsTest, CasesByHand) {
  for (const OpCase& op_case : AllCases()) {
    SCOPED_TRACE(std::string(GetOpInfo(op_case.op).name) + " " + op_case.name);
    ExpectTensor(RunOp(op_case.op, op_case.inputs, op_case.attrs),
                 op_case.expected, 2e-7);
  }
}

TEST(OpsTest, EveryOpHasCases) {
  std::set<OpKind> covered;
  for (const OpCase& op_case : AllCases()) covered.insert(op_case.op);
  for (const OpInfo& info : AllOps()) {
    EXPECT_TRUE(covered.contains(info.kind))
        << info.name << " has no case by hand in ops_test.cc";
  }
}

TEST(OpsTest, EveryRowIsComplete) {
  for (size_t i = 0; i < AllOps().size(); ++i) {
    const OpInfo& info = AllOps()[i];
    EXPECT_EQ(static_cast<size_t>(info.kind), i);
    EXPECT_EQ(FindOp(info.name), &info);
    EXPECT_NE(info.infer, nullptr) << info.name;
    EXPECT_NE(info.interpret, nullptr) << info.name;
    EXPECT_GE(info.min_inputs, 1) << info.name;
    EXPECT_GE(info.max_inputs, info.min_inputs) << info.name;
    const auto file = std::filesystem::path(HEXLLM_SOURCE_DIR) / "src/ir/ops" /
                      (std::string(info.name) + ".cc");
    EXPECT_TRUE(std::filesystem::exists(file)) << file;
  }
  EXPECT_EQ(FindOp("no_such_op"), nullptr);
}

TEST(OpsTest, EveryAttributeHasItsText) {
  for (const OpInfo& info : AllOps()) {
    for (const AttrSpec& spec : info.attrs)
      EXPECT_EQ(FindAttr(AttrText(spec.name)), spec.name);
  }
  EXPECT_EQ(FindAttr("no_such_attribute"), std::nullopt);
}

}  // namespace
}  // namespace hexllm::ir

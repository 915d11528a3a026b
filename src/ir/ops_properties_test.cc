// Laws that ops obey on any input.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/ops.h"
#include "tests/support/ir_tensors.h"

namespace hexllm::ir {
namespace {

using testing::ExpectTensor;
using testing::F32;
using testing::RandomF32;
using testing::RunOp;

constexpr float kHidden = -std::numeric_limits<float>::infinity();

TEST(OpPropertiesTest, LinearIsLinear) {
  PseudoRandom random("linear");
  const HostTensor a = RandomF32({3, 5}, random);
  const HostTensor b = RandomF32({3, 5}, random);
  const HostTensor w = RandomF32({4, 5}, random);
  const HostTensor of_sum =
      RunOp(OpKind::kLinear, {RunOp(OpKind::kAdd, {a, b}), w});
  const HostTensor sum = RunOp(OpKind::kAdd, {RunOp(OpKind::kLinear, {a, w}),
                                              RunOp(OpKind::kLinear, {b, w})});
  ExpectTensor(of_sum, sum, 1e-6);
}

TEST(OpPropertiesTest, RowsDoNotDependOnTheirNeighbours) {
  PseudoRandom random("rows");
  const HostTensor x = RandomF32({3, 5}, random);
  const HostTensor w = RandomF32({4, 5}, random);
  const Attrs row = {{AttrName::kBegin, int64_t{1}},
                     {AttrName::kCount, int64_t{1}}};
  const HostTensor alone =
      RunOp(OpKind::kLinear, {RunOp(OpKind::kSliceRows, {x}, row), w});
  ExpectTensor(RunOp(OpKind::kSliceRows, {RunOp(OpKind::kLinear, {x, w})}, row),
               alone);
}

TEST(OpPropertiesTest, RmsNormIgnoresTheScaleOfItsInput) {
  PseudoRandom random("norm");
  const HostTensor x = RandomF32({3, 6}, random);
  const HostTensor w = RandomF32({6}, random);
  const Attrs attrs = {{AttrName::kEps, 0.0}, {AttrName::kWeightOffset, 0.0}};
  const HostTensor scaled =
      RunOp(OpKind::kScale, {x}, {{AttrName::kFactor, 1024.0}});
  ExpectTensor(RunOp(OpKind::kRmsNorm, {scaled, w}, attrs),
               RunOp(OpKind::kRmsNorm, {x, w}, attrs), 1e-6);
}

// The score of a rotated query and key depends on the difference of their
// angles alone.
TEST(OpPropertiesTest, RopeMakesScoresRelative) {
  PseudoRandom random("rope");
  const HostTensor q = RandomF32({1, 1, 2}, random);
  const HostTensor k = RandomF32({1, 1, 2}, random);
  auto score = [&](double q_angle, double k_angle) {
    auto turn = [](const HostTensor& x, double angle) {
      return RunOp(OpKind::kRope,
                   {x, F32({1, 1}, {static_cast<float>(std::cos(angle))}),
                    F32({1, 1}, {static_cast<float>(std::sin(angle))})});
    };
    const HostTensor a = turn(q, q_angle);
    const HostTensor b = turn(k, k_angle);
    return a.floats[0] * b.floats[0] + a.floats[1] * b.floats[1];
  };
  EXPECT_NEAR(score(0.3, 0.1), score(1.7, 1.5), 1e-6);
  EXPECT_GT(std::abs(score(0.3, 0.1) - score(0.3, 0.9)), 1e-3);
}

TEST(OpPropertiesTest, TransposeUndoesItself) {
  PseudoRandom random("transpose");
  const HostTensor x = RandomF32({2, 3, 4, 5}, random);
  const HostTensor there =
      RunOp(OpKind::kTranspose, {x}, {{AttrName::kPerm, Shape{2, 0, 3, 1}}});
  ExpectTensor(RunOp(OpKind::kTranspose, {there},
                     {{AttrName::kPerm, Shape{1, 3, 0, 2}}}),
               x);
}

TEST(OpPropertiesTest, FusedOpsAreExactlyTheirParts) {
  PseudoRandom random("fused");
  const HostTensor x = RandomF32({3, 7}, random);
  const HostTensor w = RandomF32({4, 7}, random);
  const HostTensor bias = RandomF32({4}, random);
  const HostTensor residual = RandomF32({3, 4}, random);
  ExpectTensor(
      RunOp(OpKind::kLinearAdd, {x, w, residual, bias}),
      RunOp(OpKind::kAdd, {residual, RunOp(OpKind::kLinear, {x, w, bias})}));
  ExpectTensor(
      RunOp(OpKind::kGatedMul, {residual, residual},
            {{AttrName::kActivation, int64_t{0}}}),
      RunOp(OpKind::kMul, {residual, RunOp(OpKind::kSilu, {residual})}));
  ExpectTensor(
      RunOp(OpKind::kGatedMul, {residual, residual},
            {{AttrName::kActivation, int64_t{1}}}),
      RunOp(OpKind::kMul,
            {residual, RunOp(OpKind::kGelu, {residual},
                             {{AttrName::kApproximate, int64_t{1}}})}));
}

// Inputs of an attention over 3 columns: `past` of them as past, the others as
// new ones (T = 3 - past rows).
struct Columns {
  std::vector<float> k = {0.5f, -1, 2, 0.25f, 1, -0.5f};  // [D=2,3]
  std::vector<float> v = {1, 2, 3, 4, 5, 6};              // [3,D=2]

  HostTensor K(size_t begin, size_t end) const {
    HostTensor out = F32({1, 2, static_cast<int64_t>(end - begin)}, {});
    for (size_t d = 0; d < 2; ++d) {
      for (size_t c = begin; c < end; ++c) out.floats.push_back(k[d * 3 + c]);
    }
    return out;
  }
  HostTensor V(size_t begin, size_t end) const {
    const auto at = [&](size_t c) {
      return v.begin() + static_cast<ptrdiff_t>(c * 2);
    };
    return F32({1, static_cast<int64_t>(end - begin), 2}, {at(begin), at(end)});
  }
};

const Attrs kPlain = {{AttrName::kScale, 0.7}, {AttrName::kSoftcap, 0.0}};

// A whole sequence at once and its last row alone, over a past, are the same.
TEST(OpPropertiesTest, AttentionOfPastAndNewColumnsIsOne) {
  PseudoRandom random("attention");
  const Columns columns;
  const HostTensor q = RandomF32({3, 2, 2}, random);
  const HostTensor mask =
      F32({3, 3}, {0, kHidden, kHidden, 0, 0, kHidden, 0, 0, 0});
  const HostTensor whole = RunOp(OpKind::kAttention,
                                 {q, columns.K(0, 0), columns.V(0, 0),
                                  columns.K(0, 3), columns.V(0, 3), mask},
                                 kPlain);
  const Attrs last = {{AttrName::kBegin, int64_t{2}},
                      {AttrName::kCount, int64_t{1}}};
  const HostTensor alone = RunOp(
      OpKind::kAttention,
      {RunOp(OpKind::kSliceRows, {q}, last), columns.K(0, 2), columns.V(0, 2),
       columns.K(2, 3), columns.V(2, 3), F32({1, 3}, {0, 0, 0})},
      kPlain);
  ExpectTensor(RunOp(OpKind::kSliceRows, {whole}, last), alone);
}

TEST(OpPropertiesTest, AttentionIgnoresWhatIsHidden) {
  PseudoRandom random("hidden");
  const HostTensor q = RandomF32({1, 1, 2}, random);
  const HostTensor mask = F32({1, 3}, {0, kHidden, 0});
  Columns columns;
  auto run = [&] {
    return RunOp(OpKind::kAttention,
                 {q, columns.K(0, 2), columns.V(0, 2), columns.K(2, 3),
                  columns.V(2, 3), mask},
                 kPlain);
  };
  const HostTensor before = run();
  columns.k[1] = 77;
  columns.k[4] = -77;
  columns.v[2] = 1e30f;
  ExpectTensor(run(), before);
}

TEST(OpPropertiesTest, AttentionSurvivesHugeScores) {
  const HostTensor out =
      RunOp(OpKind::kAttention,
            {F32({1, 1, 1}, {1e30f}), F32({1, 1, 1}, {1}), F32({1, 1, 1}, {4}),
             F32({1, 1, 1}, {-1}), F32({1, 1, 1}, {8}), F32({1, 2}, {0, 0})},
            kPlain);
  ExpectTensor(out, F32({1, 1, 1}, {4}));
}

}  // namespace
}  // namespace hexllm::ir

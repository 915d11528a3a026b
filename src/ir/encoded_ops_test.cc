// What graphs with encodings compute: exact sums of linear and matmul, and
// rounded outputs, on cases worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/half.h"
#include "ir/encode.h"
#include "ir/interpret.h"
#include "ir/verify.h"
#include "tests/support/ir_tensors.h"

namespace hexllm::ir {
namespace {

using hexllm::testing::ExpectTensor;
using hexllm::testing::F32;
using hexllm::testing::F32Type;
using hexllm::testing::RandomF32;

// One op: inputs f32 with encodings, then constants with theirs.
struct Case {
  OpKind op;
  struct Input {
    HostTensor tensor;
    std::optional<Encoding> encoding = {};
  };
  std::vector<Input> inputs;
  std::vector<Constant> constants = {};
  Attrs attrs = {};
  std::optional<Encoding> encoding = {};  // of the output
};

Constant F32Constant(Shape shape, const std::vector<float>& values,
                     std::optional<Encoding> encoding) {
  auto owned = std::make_shared<std::string>(values.size() * 4, '\0');
  std::memcpy(owned->data(), values.data(), owned->size());
  return {.name = "w",
          .type = F32Type(std::move(shape)),
          .bytes = AsBytes(*owned),
          .owned = owned,
          .encoding = std::move(encoding)};
}

HostTensor RunCase(const Case& test) {
  Module module;
  Graph& graph = module.graphs.emplace_back();
  graph.name = "g";
  std::vector<ValueId> ids;
  std::vector<HostTensor> inputs;
  for (const Case::Input& input : test.inputs) {
    const auto layer = static_cast<int32_t>(ids.size());
    ids.push_back(
        graph.AddInput({RoleKind::kEmbedding, layer}, input.tensor.type));
    graph[ids.back()].encoding = input.encoding;
    inputs.push_back(input.tensor);
  }
  for (const Constant& constant : test.constants)
    ids.push_back(graph.AddConstant(module.constants.Add(constant), constant));
  if (test.op == OpKind::kLinearAdd) std::swap(ids[1], ids[2]);
  const ValueId out = graph.AddNode(test.op, ids, test.attrs, "out");
  graph[out].encoding = test.encoding;
  graph.AddOutput({RoleKind::kTap, 0, "out"}, out);
  return Interpret(module, graph, inputs)[0];
}

const Encoding kX{.dtype = DType::kU8, .scales = {0.5f}, .zero_points = {4}};

TEST(EncodedOpsTest, LinearSumsCodes) {
  // x: codes 6, 3 -> steps 2, -1. w: codes [[3,1],[-7,7]].
  const Case test{.op = OpKind::kLinear,
                  .inputs = {{F32({1, 2}, {1, -0.5f}), kX}},
                  .constants = {F32Constant({2, 2}, {0.75f, 0.3f, -99, 99},
                                            Encoding{.dtype = DType::kI8,
                                                     .bits = 4,
                                                     .axis = 0,
                                                     .scales = {0.25f, 2}}),
                                F32Constant({2}, {1.3f, -3},
                                            Encoding{.dtype = DType::kI32,
                                                     .axis = 0,
                                                     .scales = {0.125f, 1}})}};
  // Channel 0: step 0.125, sum 2*3-1 = 5, bias 1.3 / 0.125 = 10.4 -> 10.
  // Channel 1: step 1, sum -14-7 = -21, bias -3.
  ExpectTensor(RunCase(test), F32({1, 2}, {15 * 0.125f, -24}));
}

// w: codes [[3,1],[-7,7]]. Bias, with x of kX: 10 and -3.
std::vector<Constant> WeightAndBias() {
  return {
      F32Constant(
          {2, 2}, {0.75f, 0.25f, -99, 99},
          Encoding{
              .dtype = DType::kI8, .bits = 4, .axis = 0, .scales = {0.25f, 2}}),
      F32Constant(
          {2}, {1.25f, -3},
          Encoding{.dtype = DType::kI32, .axis = 0, .scales = {0.125f, 1}})};
}

TEST(EncodedOpsTest, LinearDropsBitsOfEachTerm) {
  // x: codes 6, 3, zero 4. w: codes [[3,1],[-7,7]], biases 10 and -3.
  const Case test{.op = OpKind::kLinear,
                  .inputs = {{F32({1, 2}, {1, -0.5f}), kX}},
                  .constants = WeightAndBias(),
                  .attrs = {{AttrName::kDroppedBits, int64_t{2}}}};
  // Channel 0: floor(21 / 4) - floor(4 * 4 / 4 + 1/2) + trunc(10 / 4) = 3.
  // Channel 1: floor(-21 / 4) - floor(0 + 1/2) + trunc(-3 / 4) = -6.
  ExpectTensor(RunCase(test), F32({1, 2}, {3 * 4 * 0.125f, -6 * 4}));
}

TEST(EncodedOpsTest, LinearInFixedPoint) {
  // x: steps 2, -1. w: codes [[3,1],[-7,7]], bias 10 and -3: sums 15 and -24.
  const Case test{
      .op = OpKind::kLinear,
      .inputs = {{F32({1, 2}, {1, -0.5f}), kX}},
      .constants = WeightAndBias(),
      .attrs = {{AttrName::kFixedPoint, int64_t{1}}},
      .encoding =
          Encoding{.dtype = DType::kU8, .scales = {10}, .zero_points = {100}}};
  // Ratio 0.0125 = 0.8 * 2^-6: floor(15 / 2^3) = 1 sixteenth, times
  // round(0.0125 * 2^18) = 3277: floor((3 * 3277 + 2^15) / 2^16) = 0.
  // Ratio 0.1 = 0.8 * 2^-3: -24 sixteenths, floor((-47 * 3277 + 2^15) / 2^16).
  ExpectTensor(RunCase(test), F32({1, 2}, {0, -20}));
}

TEST(EncodedOpsTest, NormsRoundDown) {
  Case test{.op = OpKind::kRmsNorm,
            .inputs = {{F32({1, 2}, {3, -3})}},
            .constants = {F32Constant({2}, {1.9f, 1.9f}, std::nullopt)},
            .attrs = {{AttrName::kEps, 0.0},
                      {AttrName::kWeightOffset, 0.0},
                      {AttrName::kRoundsDown, int64_t{1}}},
            .encoding = Encoding{.scales = {1}, .zero_points = {5}}};
  ExpectTensor(RunCase(test), F32({1, 2}, {1, -2}));
  test.attrs[2].name = AttrName::kFastRoot;
  test.encoding = std::nullopt;
  // Of 9: 5e-6 below 1/3 at most, and above 1e-6 here.
  const HostTensor fast = RunCase(test);
  EXPECT_LT(fast.floats[0], 1.9f * (1 - 1e-7f));
  EXPECT_GT(fast.floats[0], 1.9f * (1 - 5e-6f));
}

TEST(EncodedOpsTest, SoftmaxInFixedPoint) {
  // Powers of 32767 alone: sums of 1 and of 4 of them.
  const Case test{.op = OpKind::kSoftmax,
                  .inputs = {{F32({2, 4}, {0, -64, -64, -64, -1, -1, -1, -1}),
                              Encoding{.scales = {1}, .zero_points = {65535}}}},
                  .attrs = {{AttrName::kFixedPoint, int64_t{1}}},
                  .encoding = Encoding{.scales = {1.0f / 65536}}};
  const float quarter = 16383.0f / 65536;
  ExpectTensor(RunCase(test), F32({2, 4}, {65534.0f / 65536, 0, 0, 0, quarter,
                                           quarter, quarter, quarter}));
}

TEST(EncodedOpsTest, HalvesBecomeCodesInHalfSteps) {
  // 100.5 and 2.4995 steps of 1 as halves; the latter is 2.5 there.
  const Case test{
      .op = OpKind::kConvert,
      .inputs = {{F32({4}, {100.5f, 2.4995117f, -2.4995117f, 300}),
                  Encoding{.dtype = DType::kF16}}},
      .attrs = {{AttrName::kHalfSteps, int64_t{1}}},
      .encoding = Encoding{
          .dtype = DType::kU8, .scales = {0.9999f}, .zero_points = {20}}};
  ExpectTensor(RunCase(test), F32({4}, {101 * 0.9999f, 3 * 0.9999f,
                                        -3 * 0.9999f, 235 * 0.9999f}));
}

TEST(EncodedOpsTest, LinearOutputIsRounded) {
  Case test{.op = OpKind::kLinear,
            .inputs = {{F32({1, 2}, {1, -0.5f}), kX}},
            .constants = {
                F32Constant({1, 2}, {1.5f, 2},
                            Encoding{.dtype = DType::kI16, .scales = {0.5f}})}};
  ExpectTensor(RunCase(test), F32({1, 1}, {0.5f}));
  test.encoding = Encoding{.scales = {0.3f}};
  ExpectTensor(RunCase(test), F32({1, 1}, {2 * 0.3f}));
}

TEST(EncodedOpsTest, LinearOfBlocksOfFactors) {
  // Steps 2, -1, 2, -1; w codes 1, 2, 3, 4 times factors 1, 1, 16, 16.
  const Case test{
      .op = OpKind::kLinear,
      .inputs = {{F32({1, 4}, {1, -0.5f, 1, -0.5f}), kX}},
      .constants = {F32Constant({1, 4}, {1, 2, 48, 64},
                                Encoding{.dtype = DType::kI8,
                                         .bits = 4,
                                         .axis = 0,
                                         .block = 2,
                                         .scales = {1},
                                         .block_scales = {1, 16}})}};
  ExpectTensor(RunCase(test), F32({1, 1}, {32 * 0.5f}));
}

// The sum needs 47 bits: it is taken in integers and rounded once.
TEST(EncodedOpsTest, LinearSumsExactly) {
  const Encoding u16{.scales = {1}};
  const Encoding i16{.dtype = DType::kI16, .scales = {1}};
  const std::vector<float> x(64, 65535);
  std::vector<float> w(64, 32767);
  w[63] = 32766;
  const Case test{.op = OpKind::kLinear,
                  .inputs = {{F32({1, 64}, x), u16}},
                  .constants = {F32Constant({1, 64}, w, i16)}};
  const int64_t sum = int64_t{64} * 65535 * 32767 - 65535;
  ExpectTensor(RunCase(test), F32({1, 1}, {static_cast<float>(sum)}));
}

TEST(EncodedOpsTest, LinearAddAddsBehindTheSum) {
  const Case test{
      .op = OpKind::kLinearAdd,
      .inputs = {{F32({1, 2}, {1, -0.5f}), kX}, {F32({1, 1}, {0.2f})}},
      .constants = {F32Constant({1, 2}, {3, 1},
                                Encoding{.dtype = DType::kI8, .scales = {1}}),
                    F32Constant({1}, {1.1f},
                                Encoding{.dtype = DType::kI32,
                                         .axis = 0,
                                         .scales = {0.5f}})},
      .encoding = Encoding{.dtype = DType::kF16}};
  // (2*3 - 1 + 2) * 0.5 + 0.2, in half precision.
  ExpectTensor(RunCase(test), F32({1, 1}, {F16ToF32(F32ToF16(3.7f))}));
}

TEST(EncodedOpsTest, WeightsOfOtherOpsAreRounded) {
  const Case test{
      .op = OpKind::kRmsNorm,
      .inputs = {{F32({1, 2}, {3, 3})}},
      .constants = {F32Constant({2}, {0.6f, 2.4f}, Encoding{.scales = {1}})},
      .attrs = {{AttrName::kEps, 0.0}, {AttrName::kWeightOffset, 0.0}}};
  ExpectTensor(RunCase(test), F32({1, 2}, {1, 2}));
}

TEST(EncodedOpsTest, MatMulSumsCodes) {
  const Encoding b{.scales = {0.25f}, .zero_points = {100}};
  const Attrs scale = {{AttrName::kScale, 0.1}};
  // Steps 2, -1 times -100, 65435: the product of the scales is 0.0125.
  const Case test{.op = OpKind::kMatMul,
                  .inputs = {{F32({1, 1, 2}, {1, -0.5f}), kX},
                             {F32({1, 2, 1}, {-25, 65435 * 0.25f}), b}},
                  .attrs = scale};
  const double step = 0.5 * 0.25 * 0.1;
  ExpectTensor(RunCase(test),
               F32({1, 1, 1}, {static_cast<float>(-65635 * step)}));
}

TEST(EncodedOpsTest, MatMulDropsBits) {
  const Encoding b{.scales = {0.25f}, .zero_points = {100}};
  // As above. The zero point 4 of a adds 4 * 65335:
  // floor((261340 - 65635) / 2^16) - floor(261340 / 2^16 + 1/2) = 2 - 4.
  const Case test{.op = OpKind::kMatMul,
                  .inputs = {{F32({1, 1, 2}, {1, -0.5f}), kX},
                             {F32({1, 2, 1}, {-25, 65435 * 0.25f}), b}},
                  .attrs = {{AttrName::kScale, 0.1},
                            {AttrName::kDroppedBits, int64_t{16}}}};
  const double step = 0.5 * 0.25 * 0.1;
  ExpectTensor(RunCase(test),
               F32({1, 1, 1}, {static_cast<float>(-2 * 65536 * step)}));
}

TEST(EncodedOpsTest, ConvertMovesToAnotherGrid) {
  const Case test{
      .op = OpKind::kConvert,
      .inputs = {{F32({3}, {1, -0.5f, 100}), kX}},
      .encoding =
          Encoding{.dtype = DType::kU8, .scales = {0.3f}, .zero_points = {1}}};
  ExpectTensor(RunCase(test), F32({3}, {3 * 0.3f, -0.3f, 254 * 0.3f}));
}

// --- Weights in blocks of 32

// A q4_1 or q8_0 row of one block.
Constant BlockConstant(DType dtype, const std::string& bytes, int64_t columns) {
  auto owned = std::make_shared<const std::string>(bytes);
  return {.name = "w",
          .type = {.dtype = dtype, .shape = {1, columns}},
          .bytes = AsBytes(*owned),
          .owned = owned,
          .encoding = Encoding{.dtype = dtype}};
}

std::string Half(float value) {
  const uint16_t bits = F32ToF16(value);
  std::string out(2, '\0');
  std::memcpy(out.data(), &bits, 2);
  return out;
}

// 127, 1.6, -0.5, NaN, 0 ...: sx = 1, codes 127, 2, 0 (half to even), 0, 0 ...
HostTensor BlockInput() {
  std::vector<float> x(32, 0);
  x[0] = 127;
  x[1] = 1.6f;
  x[2] = -0.5f;
  x[3] = std::nanf("");
  return F32({1, 32}, std::move(x));
}

TEST(EncodedOpsTest, LinearOfQ8Blocks) {
  std::string row = Half(0.5f) + std::string(32, '\x05');
  row[2] = '\x80';  // -128 may be stored
  const Case test{.op = OpKind::kLinear,
                  .inputs = {{BlockInput()}},
                  .constants = {BlockConstant(DType::kQ8_0, row, 32)}};
  ExpectTensor(RunCase(test), F32({1, 1}, {(127 * -128 + 2 * 5) * 0.5f}));
}

TEST(EncodedOpsTest, LinearOfQ4BlocksAndBias) {
  // Elements 0 and 16: codes 3 and 15; the others 0.
  std::string row = Half(0.25f) + Half(-2) + std::string(16, '\0');
  row[4] = '\xf3';
  const Case test{.op = OpKind::kLinear,
                  .inputs = {{BlockInput()}},
                  .constants = {BlockConstant(DType::kQ4_1, row, 32),
                                F32Constant({1}, {0.1f}, {})}};
  ExpectTensor(RunCase(test),
               F32({1, 1}, {127 * 3 * 0.25f - 2 * 129.0f + 0.1f}));
}

TEST(EncodedOpsTest, BlocksOfZerosAreZero) {
  const std::string row = Half(1) + std::string(32, '\x07');
  const Case test{.op = OpKind::kLinear,
                  .inputs = {{F32({1, 32}, std::vector<float>(32, 0))}},
                  .constants = {BlockConstant(DType::kQ8_0, row, 32)}};
  ExpectTensor(RunCase(test), F32({1, 1}, {0}));
}

// Weights of another type are rounded to the blocks first; the result is near
// that of floats.
TEST(EncodedOpsTest, StoredFloatsBecomeBlocks) {
  PseudoRandom random("blocks");
  const HostTensor x = RandomF32({3, 64}, random);
  const HostTensor w = RandomF32({5, 64}, random);
  Case test{.op = OpKind::kLinear,
            .inputs = {{x}},
            .constants = {F32Constant({5, 64}, w.floats, {})}};
  const HostTensor exact = RunCase(test);
  test.constants[0].encoding = Encoding{.dtype = DType::kQ8_0};
  ExpectTensor(RunCase(test), exact, 0.05);
  test.constants[0].encoding = Encoding{.dtype = DType::kQ4_1};
  ExpectTensor(RunCase(test), exact, 0.6);
  EXPECT_NE(RunCase(test).floats, exact.floats);
}

}  // namespace
}  // namespace hexllm::ir

#include "backend/htp/qnn_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "backend/htp/qnn_executable.h"
#include "backend/htp/qnn_testing.h"

namespace hexllm::htp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kRows = 4;
constexpr int64_t kIn = 64;
constexpr int64_t kOut = 96;
constexpr float kXScale = 4.0F / 32767;
constexpr float kYScale = 8.0F / 32767;
constexpr int32_t kXZero = 24230;  // no multiple of 256
constexpr int32_t kYZero = 32768;

// y = x w + b as a Conv2d of 1x1: random codes, and the exact result.
struct Linear {
  int32_t bits = 8;
  int32_t block = 0;  // LPBQ when > 0
  std::vector<uint16_t> x = std::vector<uint16_t>(kRows * kIn);
  std::vector<int8_t> w = std::vector<int8_t>(kIn * kOut);  // [K,N]
  std::vector<int32_t> bias = std::vector<int32_t>(kOut);
  TensorEncoding weights;

  Linear(int32_t code_bits, int32_t block_size)
      : bits(code_bits), block(block_size) {
    std::mt19937 random(7);
    std::normal_distribution<float> x_code(kXZero, 8192);  // values of 1
    const int most = (1 << (bits - 1)) - 1;
    std::uniform_int_distribution<int> w_code(-most, most);
    std::uniform_int_distribution<int> bias_code(-4000, 4000);
    std::uniform_real_distribution<float> scale(0.5F, 1.0F);
    std::uniform_int_distribution<int> factor(1, 16);
    for (auto& code : x) {
      code = static_cast<uint16_t>(std::clamp(x_code(random), 0.0F, 65535.0F));
    }
    for (auto& code : w) code = static_cast<int8_t>(w_code(random));
    for (auto& code : bias) code = bias_code(random) * (bits == 4 ? 1 : 16);
    weights.bits = bits == 8 ? 0 : 4;
    weights.axis = 3;
    for (int64_t n = 0; n < kOut; ++n) {
      weights.scales.push_back(scale(random) / static_cast<float>(most) / 8 /
                               (block > 0 ? 16 : 1));
    }
    for (int64_t i = 0; block > 0 && i < kOut * kIn / block; ++i)
      weights.block_scales.push_back(static_cast<uint8_t>(factor(random)));
  }

  // The code of y[row, n].
  double Exact(int64_t row, int64_t n) const {
    return CodeOf(
        Products(row, n) - kXZero * WeightSum(n) + bias[static_cast<size_t>(n)],
        n);
  }

  // The same as the HTP computes it: sums of products lose their low byte, what
  // the zero point adds to them is rounded to such sums, and biases lose theirs
  // towards 0. The rule of lower_rounding.h.
  double WithoutLowBytes(int64_t row, int64_t n) const {
    const int64_t sum = Products(row, n) >> 8;
    const int64_t zero = (kXZero * WeightSum(n) + 128) >> 8;
    return CodeOf(256 * (sum - zero + bias[static_cast<size_t>(n)] / 256), n);
  }

 private:
  int64_t Weight(int64_t k, int64_t n) const {
    const int64_t f = block == 0 ? 1
                                 : weights.block_scales[static_cast<size_t>(
                                       n * (kIn / block) + k / block)];
    return f * w[static_cast<size_t>(k * kOut + n)];
  }

  int64_t WeightSum(int64_t n) const {
    int64_t sum = 0;
    for (int64_t k = 0; k < kIn; ++k) sum += Weight(k, n);
    return sum;
  }

  // Of codes that count from 0.
  int64_t Products(int64_t row, int64_t n) const {
    int64_t sum = 0;
    for (int64_t k = 0; k < kIn; ++k)
      sum += Weight(k, n) * x[static_cast<size_t>(row * kIn + k)];
    return sum;
  }

  double CodeOf(int64_t sum, int64_t n) const {
    const double value = static_cast<double>(sum) * kXScale *
                         weights.scales[static_cast<size_t>(n)];
    return std::clamp(std::rint(value / kYScale) + kYZero, 0.0, 65535.0);
  }
};

TensorSpec Activation(std::string name, TensorUse use, Shape shape,
                      float scale) {
  const int32_t zero = use == TensorUse::kInput ? kXZero : kYZero;
  return {.name = std::move(name),
          .use = use,
          .dtype = DType::kU16,
          .shape = std::move(shape),
          .encoding = TensorEncoding{.scales = {scale}, .zero_points = {zero}}};
}

std::vector<NodeParam> ConvParams() {
  return {{"stride", ArrayParam<uint32_t>{{2}, {1, 1}}},
          {"pad_amount", ArrayParam<uint32_t>{{2, 2}, {0, 0, 0, 0}}}};
}

// Adds the tensors and the node of `linear` to `graph`. What was handed over is
// overwritten afterwards: the library must have copied it.
void AddLinear(QnnGraph& graph, const Linear& linear) {
  const auto x = graph.AddTensor(
      Activation("x", TensorUse::kInput, {1, 1, kRows, kIn}, kXScale));
  const auto y = graph.AddTensor(
      Activation("y", TensorUse::kOutput, {1, 1, kRows, kOut}, kYScale));
  ASSERT_TRUE(x.ok() && y.ok());
  std::vector<int8_t> codes = linear.w;
  const auto w = graph.AddStatic({.name = "w",
                                  .use = TensorUse::kStatic,
                                  .dtype = DType::kI8,
                                  .shape = {1, 1, kIn, kOut},
                                  .encoding = linear.weights},
                                 std::as_bytes(std::span(codes)));
  ASSERT_TRUE(w.ok()) << w.error().message;
  std::ranges::fill(codes, int8_t{3});
  std::vector<int32_t> bias_codes = linear.bias;
  const auto bias = graph.AddStatic({.name = "b",
                                     .use = TensorUse::kStatic,
                                     .dtype = DType::kI32,
                                     .shape = {kOut},
                                     .encoding = TensorEncoding{}},
                                    std::as_bytes(std::span(bias_codes)));
  ASSERT_TRUE(bias.ok()) << bias.error().message;
  std::ranges::fill(bias_codes, 77);
  const Status added = graph.AddNode({.name = "linear",
                                      .op = "Conv2d",
                                      .inputs = {*x, *w, *bias},
                                      .outputs = {*y},
                                      .params = ConvParams()});
  ASSERT_TRUE(added.ok()) << added.error().message;
}

// The largest differences, in codes.
struct Worst {
  double exact = 0;  // to exact arithmetic
  double bytes = 0;  // to WithoutLowBytes
  int others = 0;    // codes that are not WithoutLowBytes
  bool operator==(const Worst&) const = default;
};

Worst WorstOf(std::shared_ptr<const QnnContext> context, const GraphInfo& info,
              const Linear& linear) {
  auto graph = QnnExecutable::Retrieve(std::move(context), info);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  std::vector<uint16_t> x = linear.x;
  std::vector<uint16_t> y(kRows * kOut);
  EXPECT_TRUE(
      (*graph)->BindInput(0, std::as_writable_bytes(std::span(x))).ok());
  EXPECT_TRUE(
      (*graph)->BindOutput(0, std::as_writable_bytes(std::span(y))).ok());
  const Status done = (*graph)->Execute();
  EXPECT_TRUE(done.ok()) << done.error().message;
  Worst worst;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t n = 0; n < kOut; ++n) {
      const double code = y[static_cast<size_t>(row * kOut + n)];
      worst.exact =
          std::max(worst.exact, std::abs(code - linear.Exact(row, n)));
      const double off = std::abs(code - linear.WithoutLowBytes(row, n));
      worst.bytes = std::max(worst.bytes, off);
      worst.others += off > 0;
    }
  }
  return worst;
}

class QnnGraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = FindQnnFolder();
    if (!folder) GTEST_SKIP() << kNoQnn;
    session_ = OpenSessionForTests(*folder, "SM8750");
    ASSERT_NE(session_, nullptr);
  }
  std::shared_ptr<QnnContext> MakeContext() {
    return QnnContext::Create(session_, WeightSharing::kOff).value();
  }
  std::shared_ptr<const QnnSession> session_;
};

class QnnLinearTest
    : public QnnGraphTest,
      public ::testing::WithParamInterface<std::pair<int32_t, int32_t>> {};

// Compiles, runs; serializes, loads, runs again.
TEST_P(QnnLinearTest, CompilesSerializesLoadsAndRuns) {
  const Linear linear(GetParam().first, GetParam().second);
  auto context = MakeContext();
  auto graph = QnnGraph::Create(context, "linear", {});
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  ASSERT_NO_FATAL_FAILURE(AddLinear(**graph, linear));
  const Status finalized = (*graph)->Finalize();
  ASSERT_TRUE(finalized.ok()) << finalized.error().message;
  const GraphInfo info = (*graph)->Info();
  const Worst compiled = WorstOf(context, info, linear);
  RecordProperty("max_lsb", std::to_string(compiled.exact));
  EXPECT_LE(compiled.exact, 5) << linear.bits << " bits";
  EXPECT_LE(compiled.bytes, 1);
  EXPECT_LE(compiled.others, kRows * kOut / 100);
  auto binary = context->Serialize();
  ASSERT_TRUE(binary.ok()) << binary.error().message;
  graph->reset();
  context.reset();
  auto loaded = QnnContext::FromBinary(session_, *binary);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  std::ranges::fill(*binary, std::byte{0x5A});
  EXPECT_EQ(WorstOf(*loaded, info, linear), compiled);
}

INSTANTIATE_TEST_SUITE_P(Widths, QnnLinearTest,
                         ::testing::Values(std::pair(8, 0), std::pair(4, 0),
                                           std::pair(4, 32)));

TEST_F(QnnGraphTest, ASharedContextRunsWhereItWasCompiledOnly) {
  const Linear linear(4, 0);
  auto context = QnnContext::Create(session_, WeightSharing::kOn).value();
  GraphInfo info;
  for (const std::string name : {"one", "two"}) {
    auto graph = QnnGraph::Create(context, name, {.optimization = 1});
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    ASSERT_NO_FATAL_FAILURE(AddLinear(**graph, linear));
    ASSERT_TRUE((*graph)->Finalize().ok());
    info = (*graph)->Info();
  }
  EXPECT_LE(WorstOf(context, info, linear).bytes, 1);
  const auto binary = context->Serialize();
  ASSERT_TRUE(binary.ok()) << binary.error().message;
  const auto loaded = QnnContext::FromBinary(session_, *binary);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(loaded.error().message, HasSubstr("shared weights"));
}

// What validation refuses would compile to garbage, or not at all.
TEST_F(QnnGraphTest, ARefusedNodeIsNamedInFull) {
  session_ = OpenSessionForTests(*FindQnnFolder(), "SM8450");
  auto graph = QnnGraph::Create(MakeContext(), "kv", {});
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto a =
      (*graph)->AddTensor(Activation("a", TensorUse::kInput, {4, 8}, 1));
  const auto b =
      (*graph)->AddTensor(Activation("b", TensorUse::kInput, {8, 4}, 1));
  const auto y =
      (*graph)->AddTensor(Activation("y", TensorUse::kOutput, {4, 4}, 1));
  ASSERT_TRUE(a.ok() && b.ok() && y.ok());
  NodeSpec node{.name = "layer0.scores",
                .op = "MatMul",
                .inputs = {*a, *b},
                .outputs = {*y},
                .params = {{"transpose_in0", false}, {"transpose_in1", false}}};
  const Status refused = (*graph)->AddNode(node);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("'kv', node 'layer0.scores'"),
                    HasSubstr("SM8450 (v69) refuses MatMul(a u16[4,8], b "
                              "u16[8,4]) -> y u16[4,4]"),
                    HasSubstr("QNN error 3110"), HasSubstr("expected >= 73")));
  node.op = "MaskedSoftmax";
  EXPECT_THAT((*graph)->AddNode(node).error().message,
              HasSubstr("has no op MaskedSoftmax"));
  node.inputs = {TensorId{99}};
  EXPECT_EQ((*graph)->AddNode(node).error().code, ErrorCode::kUsage);
  const Status empty = (*graph)->Finalize();
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.error().message,
              AllOf(HasSubstr("of 0 nodes does not compile for SM8450"),
                    HasSubstr("zero node")));
}

// x[32,256] -> y[32,512] with weights in blocks.
NodeSpec FullyConnectedOfBlocks(QnnGraph& graph) {
  constexpr int64_t kN = 512;
  constexpr int64_t kK = 256;
  const auto x =
      graph.AddTensor(Activation("fc.x", TensorUse::kInput, {32, kK}, kXScale));
  const auto y = graph.AddTensor(
      Activation("fc.y", TensorUse::kOutput, {32, kN}, kYScale));
  const std::vector<std::byte> codes(kN * kK, std::byte{3});
  const auto w = graph.AddStatic(
      {.name = "fc.w",
       .use = TensorUse::kStatic,
       .dtype = DType::kI8,
       .shape = {kN, kK},
       .encoding = TensorEncoding{.bits = 4,
                                  .axis = 0,
                                  .scales = std::vector<float>(kN, 0.01F),
                                  .block_scales =
                                      std::vector<uint8_t>(kN * kK / 32, 3)}},
      codes);
  EXPECT_TRUE(x.ok() && y.ok() && w.ok());
  return {.name = "layer0.fc",
          .op = "FullyConnected",
          .inputs = {*x, *w},
          .outputs = {*y}};
}

// Validation lets it through; the compiler gives up and says nothing that a
// user could make use of.
TEST_F(QnnGraphTest, ANodeThatDoesNotCompileIsNamed) {
  auto graph = QnnGraph::Create(MakeContext(), "kv", {});
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  AddLinear(**graph, Linear(8, 0));
  const Status added = (*graph)->AddNode(FullyConnectedOfBlocks(**graph));
  ASSERT_TRUE(added.ok()) << added.error().message;
  const Status done = (*graph)->Finalize();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(done.error().message,
              AllOf(HasSubstr("of 2 nodes does not compile for SM8750 (v79)"),
                    HasSubstr("QNN error 1002"),
                    HasSubstr("node 'layer0.fc': SM8750 (v79) refuses "
                              "FullyConnected(fc.x u16[32,256], fc.w i8/4")));
  EXPECT_THAT(done.error().message, Not(HasSubstr("Conv2d")));
}

TEST_F(QnnGraphTest, RefusesMisuse) {
  auto context = MakeContext();
  EXPECT_FALSE(QnnGraph::Create(context, "g", {.optimization = 4}).ok());
  EXPECT_FALSE(QnnGraph::Create(context, "g", {.vtcm_mb = 9}).ok());
  auto graph = QnnGraph::Create(context, "g", {}).value();
  EXPECT_THAT(QnnGraph::Create(context, "g", {}).error().message,
              HasSubstr("uplicate"));
  const TensorSpec x = Activation("x", TensorUse::kInput, {1, 4}, 1);
  ASSERT_TRUE(graph->AddTensor(x).ok());
  EXPECT_THAT(graph->AddTensor(x).error().message, HasSubstr("two tensors"));
  TensorSpec constant = Activation("c", TensorUse::kStatic, {1, 4}, 1);
  EXPECT_FALSE(graph->AddTensor(constant).ok());
  const std::vector<std::byte> seven(7);
  EXPECT_THAT(graph->AddStatic(constant, seven).error().message,
              HasSubstr("with 7 bytes"));
}

TEST_F(QnnGraphTest, ChecksBuffers) {
  auto context = MakeContext();
  const Linear linear(8, 0);
  auto graph = QnnGraph::Create(context, "linear", {}).value();
  ASSERT_NO_FATAL_FAILURE(AddLinear(*graph, linear));
  ASSERT_TRUE(graph->Finalize().ok());
  EXPECT_FALSE(graph->Finalize().ok());
  GraphInfo info = graph->Info();
  auto run = QnnExecutable::Retrieve(context, info).value();
  std::vector<std::byte> x(info.inputs[0].bytes);
  std::vector<std::byte> y(info.outputs[0].bytes + 1);
  EXPECT_EQ(run->Execute().error().code, ErrorCode::kUsage);
  ASSERT_TRUE(run->BindInput(0, x).ok());
  EXPECT_THAT(run->Execute().error().message, HasSubstr("y u16"));
  EXPECT_THAT(run->BindOutput(0, y).error().message, HasSubstr("needs 768"));
  EXPECT_FALSE(run->BindOutput(1, y).ok());
  info.name = "other";
  EXPECT_EQ(QnnExecutable::Retrieve(context, info).error().code,
            ErrorCode::kBadInput);
}

}  // namespace
}  // namespace hexllm::htp

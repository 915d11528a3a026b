// How the HTP rounds, on single ops in its simulator: the attributes that
// ModelRounding gives against the vendor's numbers. Converts and matmuls of u16
// are in conformance_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/htp/lower_rounding.h"
#include "backend/htp/lower_testing.h"
#include "backend/htp/qnn_testing.h"
#include "backend/htp/soc_table.h"
#include "base/half.h"
#include "ir/float_constant.h"
#include "ir/interpret.h"
#include "tests/support/ir_tensors.h"

namespace hexllm::htp {
namespace {

// Ops side by side in one graph, each with an input of its own.
class OpBatch {
 public:
  OpBatch() {
    ir::Graph& graph = module_.graphs.emplace_back();
    graph.name = "ops";
    graph.kind = GraphKind::kPrefill;
  }

  ir::ValueId Input(const ir::Encoding& encoding, ir::HostTensor x) {
    ir::Graph& graph = module_.graphs[0];
    const ir::ValueId id = graph.AddInput(
        {.kind = RoleKind::kKIn, .index = static_cast<int32_t>(inputs_.size())},
        x.type);
    graph[id].encoding = encoding;
    ir::RoundToEncoding(encoding, x.type.shape, x.floats);
    inputs_.push_back(std::move(x));
    return id;
  }

  // Numbers from -1 to 1 times `most`, which codes of all the range stand for.
  ir::ValueId RandomInput(const ir::Encoding& encoding, Shape shape,
                          float most) {
    ir::HostTensor x = testing::RandomF32(std::move(shape), random_);
    for (float& value : x.floats) value *= most;
    return Input(encoding, std::move(x));
  }

  // A constant of numbers from -1 to 1, and `offset`.
  ir::ValueId Weight(Shape shape, ir::Encoding encoding, float offset = 0) {
    ir::HostTensor w = testing::RandomF32(std::move(shape), random_);
    for (float& value : w.floats) value += offset;
    ir::Constant made = ir::MakeFloatConstant(
        "w" + std::to_string(module_.graphs[0].values.size()), w.type.shape,
        w.floats);
    made.encoding = std::move(encoding);
    const ir::ConstantId id = module_.constants.Add(std::move(made));
    return module_.graphs[0].AddConstant(id, module_.constants[id]);
  }

  ir::ValueId Add(ir::OpKind op, const std::vector<ir::ValueId>& inputs,
                  const ir::Attrs& attrs, const ir::Encoding& encoding) {
    ir::Graph& graph = module_.graphs[0];
    const std::string name = "op" + std::to_string(graph.outputs.size());
    const ir::ValueId y = graph.AddNode(op, inputs, attrs, name);
    graph[y].encoding = encoding;
    graph.AddOutput({.kind = RoleKind::kTap, .name = name}, y);
    return y;
  }

  // The share of other numbers than qdq's, of each op.
  std::vector<double> Others(const char* soc) {
    const auto folder = FindQnnFolder();
    ModelRounding(module_, *FindSoc(soc));
    const auto found = RunOnHtp(
        module_, 0, {.lib_dir = *folder, .soc = soc, .vocab = 7}, inputs_);
    EXPECT_TRUE(found.ok()) << found.error().message;
    if (!found.ok()) return {};
    const auto wanted = ir::Interpret(module_, module_.graphs[0], inputs_);
    std::vector<double> others;
    for (size_t i = 0; i < wanted.size(); ++i) {
      size_t count = 0;
      for (size_t j = 0; j < wanted[i].floats.size(); ++j)
        count += (*found)[i].floats[j] != wanted[i].floats[j];
      others.push_back(static_cast<double>(count) /
                       static_cast<double>(wanted[i].floats.size()));
    }
    return others;
  }

 private:
  ir::PseudoRandom random_{11};
  ir::Module module_;
  std::vector<ir::HostTensor> inputs_;
};

const ir::Encoding kHalf{.dtype = DType::kF16};

ir::Encoding Codes(DType dtype, float scale, int32_t zero) {
  return {.dtype = dtype, .scales = {scale}, .zero_points = {zero}};
}

class HtpRounding : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!FindQnnFolder()) GTEST_SKIP() << kNoQnn;
  }
  OpBatch batch_;
};

// All halves but infinities and NaNs.
TEST_P(HtpRounding, HalvesBecomeBytes) {
  constexpr int32_t kInfinity = 0x7c00;
  ir::HostTensor x{.type = {.dtype = DType::kF32, .shape = {64, 992}}};
  for (const int32_t sign : {0, 0x8000}) {
    for (int32_t bits = 0; bits < kInfinity; ++bits)
      x.floats.push_back(F16ToF32(static_cast<uint16_t>(sign + bits)));
  }
  const ir::ValueId in = batch_.Input(kHalf, std::move(x));
  for (const auto& [scale, zero] :
       {std::pair(0.0237F, 128), {0.0311F, 100}, {0.37F, 128}}) {
    batch_.Add(ir::OpKind::kConvert, {in}, {}, Codes(DType::kU8, scale, zero));
  }
  EXPECT_EQ(batch_.Others(GetParam()), std::vector<double>(3));
}

// As kv graphs have them, of a width that is no multiple of 128 too.
TEST_P(HtpRounding, OneRowOfHalvesBecomesBytes) {
  for (const int64_t width : {96, 256}) {
    const ir::ValueId x = batch_.RandomInput(kHalf, {1, width}, 3);
    const ir::ValueId w = batch_.Weight({width}, kHalf, 1);
    const ir::ValueId norm = batch_.Add(
        ir::OpKind::kRmsNorm, {x, w},
        {{ir::AttrName::kEps, 1e-6}, {ir::AttrName::kWeightOffset, 0.0}},
        kHalf);
    batch_.Add(ir::OpKind::kConvert, {norm}, {},
               Codes(DType::kU8, 0.0311F, 128));
  }
  EXPECT_EQ(batch_.Others(GetParam()), std::vector<double>(4));
}

// i8 and int4 per channel, from small to large ratios of scales.
TEST_P(HtpRounding, LinearsOfBytes) {
  constexpr int64_t kIn = 96;
  constexpr int64_t kOut = 64;
  for (const auto& [bits, zero, ratio] :
       {std::tuple(4, 128, 0.01F), {4, 100, 0.3F}, {8, 90, 0.0007F}}) {
    ir::Encoding w{.dtype = DType::kI8, .bits = bits, .axis = 0};
    for (int64_t n = 0; n < kOut; ++n)
      w.scales.push_back(static_cast<float>(80 + n) / 144 /
                         static_cast<float>(bits == 4 ? 7 : 127));
    const ir::ValueId x =
        batch_.RandomInput(Codes(DType::kU8, 0.02F, zero), {96, kIn}, 3);
    batch_.Add(ir::OpKind::kLinear, {x, batch_.Weight({kOut, kIn}, w)}, {},
               Codes(DType::kU8, 0.02F / 7 / ratio, 140));
  }
  EXPECT_EQ(batch_.Others(GetParam()), std::vector<double>(3));
}

TEST_P(HtpRounding, LinearOfBytesWithBias) {
  constexpr int64_t kIn = 96;
  constexpr int64_t kOut = 64;
  const std::vector<float> scales(kOut, 0.01F);
  const std::vector<float> sums(kOut, 0.02F * 0.01F);
  const ir::ValueId x =
      batch_.RandomInput(Codes(DType::kU8, 0.02F, 128), {96, kIn}, 3);
  const ir::ValueId w = batch_.Weight(
      {kOut, kIn}, {.dtype = DType::kI8, .axis = 0, .scales = scales});
  const ir::ValueId bias =
      batch_.Weight({kOut}, {.dtype = DType::kI32, .axis = 0, .scales = sums});
  batch_.Add(ir::OpKind::kLinear, {x, w, bias}, {},
             Codes(DType::kU8, 0.15F, 140));
  EXPECT_LT(batch_.Others(GetParam())[0], 0.001);
}

TEST_P(HtpRounding, FactorsOfHalves) {
  const ir::ValueId x = batch_.RandomInput(kHalf, {32, 64}, 3);
  for (const double factor : {std::sqrt(24.0), 0.3})
    batch_.Add(ir::OpKind::kScale, {x}, {{ir::AttrName::kFactor, factor}},
               kHalf);
  EXPECT_EQ(batch_.Others(GetParam()), std::vector<double>(2));
}

TEST_P(HtpRounding, Softmax) {
  for (const auto& [width, scale] :
       {std::pair(3, 1.2e-4F), {10, 1.2e-4F}, {33, 3e-5F}, {256, 2e-4F}}) {
    const ir::ValueId x = batch_.RandomInput(Codes(DType::kU16, scale, 40000),
                                             {128, width}, scale * 25000);
    batch_.Add(ir::OpKind::kSoftmax, {x}, {},
               {.scales = {1.0F / 65536}, .zero_points = {0}});
  }
  const std::vector<double> others = batch_.Others(GetParam());
  ASSERT_EQ(others.size(), 4U);
  EXPECT_LT(others[0], 0.15);
  for (size_t i = 1; i < 4; ++i) EXPECT_LT(others[i], 0.05) << i;
}

TEST_P(HtpRounding, Norms) {
  constexpr int64_t kWidth = 72;
  const ir::Attrs attrs = {{ir::AttrName::kEps, 1e-6},
                           {ir::AttrName::kWeightOffset, 0.0}};
  const ir::ValueId halves = batch_.RandomInput(kHalf, {256, kWidth}, 3);
  batch_.Add(ir::OpKind::kRmsNorm, {halves, batch_.Weight({kWidth}, kHalf, 1)},
             attrs, kHalf);
  const ir::ValueId codes =
      batch_.RandomInput(Codes(DType::kU16, 1e-4F, 30318), {256, kWidth}, 3);
  batch_.Add(
      ir::OpKind::kRmsNorm,
      {codes, batch_.Weight({kWidth}, Codes(DType::kU16, 2e-5F, 0), 1.2F)},
      attrs, Codes(DType::kU16, 1.2e-4F, 33194));
  const std::vector<double> others = batch_.Others(GetParam());
  ASSERT_EQ(others.size(), 2U);
  EXPECT_LT(others[0], 0.0005);
  EXPECT_LT(others[1], 0.003);
}

INSTANTIATE_TEST_SUITE_P(Socs, HtpRounding,
                         ::testing::Values("SM8550", "SM8650", "SM8750",
                                           "SM8850"));

}  // namespace
}  // namespace hexllm::htp

// What the lowering refuses, and where factors go. That it computes the right
// numbers: conformance_test.cc and decoder_test.cc.
#include "backend/htp/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/htp/estimate.h"
#include "backend/htp/lower_factors.h"
#include "backend/htp/lower_testing.h"
#include "backend/htp/qnn_testing.h"
#include "tests/support/ir_tensors.h"
#include "tests/support/temp_dir.h"

namespace hexllm::htp {
namespace {

using ir::AttrName;
using ir::OpKind;
using testing::F32Type;
using ::testing::HasSubstr;

ir::Encoding Codes(DType dtype, int32_t zero_point) {
  return {.dtype = dtype, .scales = {0.001F}, .zero_points = {zero_point}};
}

// One graph, built node by node; every value has codes of u16.
struct Builder {
  Builder() {
    module.graphs.emplace_back().name = "g";
    graph().step_tokens = graph().context_tokens = 2;
  }
  ir::Graph& graph() { return module.graphs[0]; }
  ir::ValueId Input(Shape shape) {
    return Encoded(graph().AddInput({.kind = RoleKind::kKIn, .index = next++},
                                    F32Type(std::move(shape))));
  }
  ir::ValueId Node(OpKind op, std::vector<ir::ValueId> in,
                   ir::Attrs attrs = {}) {
    return Encoded(
        graph().AddNode(op, std::move(in), std::move(attrs), "node"));
  }
  ir::ValueId Weight(Shape shape, std::optional<ir::Encoding> encoding) {
    ir::Constant constant = ir::MakeRandomConstant(
        "w", {.dtype = DType::kF32, .shape = std::move(shape)});
    constant.encoding = std::move(encoding);
    const ir::ConstantId id = module.constants.Add(std::move(constant));
    return graph().AddConstant(id, module.constants[id]);
  }
  ir::ValueId Encoded(ir::ValueId id) {
    graph()[id].encoding = Codes(DType::kU16, 32768);
    return id;
  }
  void Output(ir::ValueId id) {
    graph().AddOutput({.kind = RoleKind::kTap, .name = "out"}, id);
  }

  ir::Module module;
  int32_t next = 0;
};

class HtpLower : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = FindQnnFolder();
    if (!folder) GTEST_SKIP() << kNoQnn;
    folder_ = *folder;
  }
  void ExpectError(const ir::Module& module, ErrorCode code, const char* text,
                   const std::string& soc = "SM8750") {
    const auto lowered = LowerForHtp(module, {.lib_dir = folder_, .soc = soc});
    ASSERT_FALSE(lowered.ok());
    EXPECT_EQ(lowered.error().code, code) << lowered.error().message;
    EXPECT_THAT(lowered.error().message, HasSubstr(text));
  }
  std::string folder_;
};

// linear of x[2,16] with this weight [8,16].
Builder Linear(std::optional<ir::Encoding> weight) {
  Builder b;
  const ir::ValueId x = b.Input({2, 16});
  b.Output(b.Node(OpKind::kLinear, {x, b.Weight({8, 16}, std::move(weight))}));
  return b;
}

TEST_F(HtpLower, NamesWhatHasNoForm) {
  ExpectError(Linear(std::nullopt).module, ErrorCode::kUnsupported,
              "tensor 'w' has no encoding");
  ExpectError(
      Linear(ir::Encoding{
                 .dtype = DType::kI8, .scales = {0.1F}, .zero_points = {3}})
          .module,
      ErrorCode::kUnsupported, "symmetric");
  ExpectError(Linear(ir::Encoding{.dtype = DType::kI8,
                                  .bits = 4,
                                  .axis = 0,
                                  .block = 8,
                                  .scales = std::vector<float>(8, 0.1F),
                                  .block_scales = std::vector<uint8_t>(16, 1)})
                  .module,
              ErrorCode::kUnsupported, "blocks of 16, 32 or 64");
  Builder bare = Linear(ir::Encoding{.dtype = DType::kF16});
  bare.graph()[bare.graph().nodes[0].output].encoding.reset();
  ExpectError(bare.module, ErrorCode::kUnsupported,
              "value 'node' has no encoding");
  Builder moved;
  const ir::ValueId x = moved.Input({2, 16});
  const ir::ValueId y =
      moved.Node(OpKind::kReshape, {x}, {{AttrName::kShape, Shape{16, 2}}});
  moved.graph()[y].encoding = Codes(DType::kU8, 128);
  moved.Output(y);
  ExpectError(moved.module, ErrorCode::kUnsupported, "encodings of input");
  Builder fused;
  const ir::ValueId gate = fused.Input({2, 16});
  fused.Output(fused.Node(OpKind::kGatedMul, {gate, fused.Input({2, 16})},
                          {{AttrName::kActivation, int64_t{0}}}));
  ExpectError(fused.module, ErrorCode::kUnsupported,
              "run the passes of target htp");
}

TEST_F(HtpLower, KnowsWhatAGenerationCannotDo) {
  const ir::Encoding wide{.dtype = DType::kI16, .scales = {0.001F}};
  ExpectError(Linear(wide).module, ErrorCode::kUnsupported, "v73", "SM8450");
  Builder b;
  const ir::ValueId x = b.Input({1, 2, 4});
  b.Output(b.Node(OpKind::kMatMul, {x, b.Input({1, 4, 8})},
                  {{AttrName::kScale, 1.0}}));
  ExpectError(b.module, ErrorCode::kUnsupported, "v73", "SM8450");
  ExpectError(b.module, ErrorCode::kUsage, "SM8750", "SM875");
}

TEST_F(HtpLower, SaysThatTheLibraryIsMissing) {
  folder_ = "/no/such/folder";
  ExpectError(Linear(ir::Encoding{.dtype = DType::kF16}).module,
              ErrorCode::kEnvironment, "/no/such/folder");
}

// Rows go through another shape; the last one is not whole tiles.
TEST_F(HtpLower, ConvertsRowsToHalvesAndBack) {
  for (const int64_t width : {64, 40}) {
    Builder b;
    const ir::ValueId half = b.Node(OpKind::kConvert, {b.Input({1, width})});
    b.graph()[half].encoding = {.dtype = DType::kF16};
    b.Output(half);
    b.graph().AddOutput({.kind = RoleKind::kTap, .name = "codes"},
                        b.Node(OpKind::kConvert, {half}));
    ir::HostTensor x{.type = F32Type({1, width})};
    for (int64_t i = 0; i < width; ++i)
      x.floats.push_back(0.001F * static_cast<float>(37 * i - 999));
    const auto found = RunOnHtp(b.module, 0, {.lib_dir = folder_}, {{x}});
    ASSERT_TRUE(found.ok()) << found.error().message;
    const auto wanted = ir::Interpret(b.module, b.graph(), {{x}});
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ((*found)[i].floats, wanted[i].floats) << i;
  }
}

TEST_F(HtpLower, WritesTheCompilersSchedule) {
  const testing::TempDir dir;
  testing::TestArtifact artifact;
  NullProgress progress;
  const auto entries =
      Lower(Linear(ir::Encoding{.dtype = DType::kI8, .scales = {0.01F}}).module,
            {.soc = "SM8750", .lib_dir = folder_, .trace_dir = dir.path()},
            artifact, progress);
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  const auto estimate = ReadEstimate(dir.path() + "/g.json");
  ASSERT_TRUE(estimate.ok()) << estimate.error().message;
  EXPECT_GT(estimate->us, 0);
}

// --- Factors ---

// scores = matmul(transpose(reshape(x projected)), b) * 0.5.
struct Attention {
  Attention() {
    const ir::ValueId x = b.Input({2, 16});
    projected = b.Node(OpKind::kLinear,
                       {x, b.Weight({8, 16}, ir::Encoding{.dtype = DType::kI8,
                                                          .scales = {0.1F}})});
    const ir::ValueId heads = b.Node(OpKind::kReshape, {projected},
                                     {{AttrName::kShape, Shape{2, 2, 4}}});
    query = b.Node(OpKind::kTranspose, {heads},
                   {{AttrName::kPerm, Shape{1, 0, 2}}});
    scores = b.Node(OpKind::kMatMul, {query, b.Input({2, 4, 8})},
                    {{AttrName::kScale, 0.5}});
  }
  double Remaining() {
    return Factors(b.graph()).Remaining(b.graph()[b.graph()[scores].producer]);
  }
  Builder b;
  ir::ValueId projected, query, scores;
};

TEST(Factors, GoBackToTheProjection) {
  Attention attention;
  const Factors factors(attention.b.graph());
  EXPECT_EQ(factors.Of(attention.projected), 0.5);
  EXPECT_EQ(factors.Of(attention.query), 0.5);
  EXPECT_EQ(factors.Of(attention.scores), 1);
  EXPECT_EQ(attention.Remaining(), 1);
}

TEST(Factors, OfASoftcapGoThroughTheProduct) {
  Attention attention;
  attention.b.Node(OpKind::kSoftcap, {attention.scores},
                   {{AttrName::kCap, 4.0}});
  const Factors factors(attention.b.graph());
  EXPECT_EQ(factors.Of(attention.projected), 0.125);
  EXPECT_EQ(factors.Of(attention.scores), 0.25);
  EXPECT_EQ(attention.Remaining(), 1);
}

TEST(Factors, StayWhereAnotherReadsTheValue) {
  Attention attention;
  attention.b.Node(OpKind::kSilu, {attention.projected});
  EXPECT_EQ(Factors(attention.b.graph()).Of(attention.query), 1);
  EXPECT_EQ(attention.Remaining(), 0.5);
}

// Heads: slices of one projection.
TEST(Factors, OfAllReadersGoBackWhenTheyAreEqual) {
  for (const double other : {0.5, 0.25}) {
    Attention attention;
    const ir::ValueId head = attention.b.Node(
        OpKind::kSliceRows, {attention.query},
        {{AttrName::kBegin, int64_t{1}}, {AttrName::kCount, int64_t{1}}});
    attention.b.Node(OpKind::kMatMul, {head, attention.b.Input({1, 4, 8})},
                     {{AttrName::kScale, other}});
    const Factors factors(attention.b.graph());
    EXPECT_EQ(factors.Of(attention.projected), other == 0.5 ? 0.5 : 1);
    EXPECT_EQ(factors.Of(head), other == 0.5 ? 0.5 : 1);
  }
}

TEST(Factors, StayWhereAnOutputWouldShowThem) {
  Attention attention;
  attention.b.Output(attention.projected);
  EXPECT_EQ(attention.Remaining(), 1);  // codes are the same
  attention.b.graph()[attention.projected].encoding = {.dtype = DType::kF16};
  EXPECT_EQ(attention.Remaining(), 0.5);
}

}  // namespace
}  // namespace hexllm::htp

#include "backend/htp/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backend/htp/qnn_graph.h"
#include "backend/htp/qnn_testing.h"

namespace hexllm::htp {
namespace {

using ::testing::HasSubstr;

// As the compiler writes it: a transfer, a convolution that runs while it does,
// a spill, and an output copied by HVX (which the main track starts).
constexpr std::string_view kTrace = R"json({ "traceEvents": [
{"name":"default_dma_start (q::ConvLayer.opt.weights_to_vtcm)","ph":"X","tid":0,
 "pid":0,"ts":0,"dur":100,"args":{"input_dims":[[1,8]],
 "bw_info":{"dram_read": 4096 , "dram_write": 0, "is_dma": 1}}},
{"name":"default_dma (q::ConvLayer.opt.weights_to_vtcm)","ph":"X","tid":7,
 "ts":100,"dur":800,"args":{"bw_info":{"dram_read":4096,"dram_write":0}}},
{"name":"q::ConvLayer_s1.opt","ph":"X","tid":0,"ts":900,"dur":1000,"args":{
 "bw_info":{"dram_read":0,"dram_write":0}}},
{"name":"default_dma_start (@Spill)","ph":"X","tid":0,"ts":1900,"dur":100,
 "args":{"bw_info":{"dram_read":0,"dram_write":512}}},
{"name":"default_dma_start (@Fill)","ph":"X","tid":0,"ts":2000,"dur":100,
 "args":{"bw_info":{"dram_read":256,"dram_write":0}}},
{"name":"default_hvx_spawn (q::*OutputSlice)","ph":"X","tid":0,"ts":2100,
 "dur":0,"args":{"bw_info":{"dram_read":0,"dram_write":64}}},
{"name":"q::*OutputSlice","ph":"X","tid":1,"ts":2200,"dur":300,"args":{
 "bw_info":{"dram_read":0,"dram_write":64}}},
{"name":"q::*OutputSlice","ph":"X","tid":2,"ts":2200,"dur":300.0,"args":{}},
{"name":"TCM usage","ph":"C","pid":0,"ts":99999,"args":{"Bytes":0}},
{"name":"thread_name","ph":"M","tid":0,"args":{"name":"FG:"}},
{"name":"thread_name","ph":"M","tid":1,"args":{"name":"HVX 1:"}},
{"name":"thread_name","ph":"M","tid":2,"args":{"name":"HVX 2:"}},
{"name":"thread_name","ph":"M","tid":7,"args":{"name":"DMA:"}}
 ],
 "DMA/L2 Access Statistics": {"min": 18446744073709551615},
 "Hextimate Configuration": {"soc_type":"SM8750","sim_core_freq":1000.0}})json";

class EstimateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "/estimate_test." +
            std::to_string(getpid()) + ".json";
  }
  void TearDown() override { std::filesystem::remove(path_); }
  Result<GraphEstimate> Read(std::string_view text) {
    std::ofstream(path_) << text;
    return ReadEstimate(path_);
  }
  std::string path_;
};

TEST_F(EstimateTest, AddsUpASchedule) {
  const auto estimate = Read(kTrace);
  ASSERT_TRUE(estimate.ok()) << estimate.error().message;
  EXPECT_EQ(estimate->soc, "SM8750");
  EXPECT_EQ(estimate->cycles, 2500);
  EXPECT_EQ(estimate->us, 2.5);
  EXPECT_EQ(estimate->ddr_read_bytes, 4096U + 256U);
  EXPECT_EQ(estimate->ddr_write_bytes, 512U + 64U);
  EXPECT_EQ(estimate->spill_bytes, 512U);
  EXPECT_EQ(estimate->fill_bytes, 256U);
  ASSERT_EQ(estimate->ops.size(), 5U);
  EXPECT_EQ(estimate->ops[0].name, "ConvLayer_s1.opt");
  EXPECT_EQ(estimate->ops[0].unit, "main");
  EXPECT_EQ(estimate->ops[0].busy_us, 1.0);
  EXPECT_EQ(estimate->ops[1].name, "ConvLayer.opt.weights_to_vtcm");
  EXPECT_EQ(estimate->ops[1].unit, "DMA");
  EXPECT_EQ(estimate->ops[2].name, "*OutputSlice");
  EXPECT_EQ(estimate->ops[2].unit, "HVX");
  EXPECT_EQ(estimate->ops[2].count, 2U);
  EXPECT_EQ(estimate->ops[3].name, "dma_start");
  EXPECT_EQ(estimate->ops[3].count, 3U);
}

TEST_F(EstimateTest, RefusesWhatIsNoSchedule) {
  std::string deep(10000, '[');
  std::string no_clock(kTrace);
  no_clock.replace(no_clock.find("sim_core_freq"), 8, "renamed_");
  std::string negative(kTrace);
  negative.replace(negative.find("\"dur\":800"), 9, "\"dur\":-80");
  std::string huge(kTrace);
  huge.replace(huge.find("\"dur\":800"), 9, "\"dur\":9e99");
  for (const std::string& text :
       {std::string("{}"), std::string(), deep, no_clock, negative, huge,
        std::string(kTrace.substr(0, kTrace.size() - 1)),
        std::string(R"({"traceEvents":[[{"ph":"X"}],7,"x",null]})"),
        std::string("\x80\x81")}) {
    const auto estimate = Read(text);
    ASSERT_FALSE(estimate.ok()) << text.substr(0, 80);
    EXPECT_EQ(estimate.error().code, ErrorCode::kBadInput);
  }
}

TEST_F(EstimateTest, AMissingFileIsNoNumber) {
  const auto estimate = ReadEstimate(path_);
  ASSERT_FALSE(estimate.ok());
  EXPECT_EQ(estimate.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(estimate.error().message, HasSubstr("wrote no estimate"));
}

TEST_F(EstimateTest, SomeSocsHaveNoCostModel) {
  EXPECT_TRUE(EstimateKeys(FindSoc("SM8750").value(), path_).ok());
  const auto keys = EstimateKeys(FindSoc("SM8475").value(), path_);
  ASSERT_FALSE(keys.ok());
  EXPECT_EQ(keys.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(keys.error().message, HasSubstr("no cost model of SM8475"));
}

// The table says for which SoCs the library can estimate; all of them compile.
TEST_F(EstimateTest, EverySocOfTheTableCompiles) {
  const auto folder = FindQnnFolder();
  if (!folder) GTEST_SKIP() << kNoQnn;
  for (const Soc& soc : AllSocs()) {
    SCOPED_TRACE(soc.name);
    const auto session = OpenSessionForTests(*folder, std::string(soc.name));
    ASSERT_NE(session, nullptr);
    GraphOptions options{.optimization = 1};
    if (soc.has_cost_model)
      options.finalize_keys = EstimateKeys(soc, path_).value();
    auto graph = QnnGraph::Create(
        QnnContext::Create(session, WeightSharing::kOff).value(), "sum",
        options);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    TensorSpec x{.name = "x",
                 .use = TensorUse::kInput,
                 .dtype = DType::kU16,
                 .shape = {1, 1, 32, 256},
                 .encoding = TensorEncoding{.scales = {0.5F}}};
    TensorSpec y = x;
    y.name = "y";
    y.use = TensorUse::kOutput;
    const TensorId in = (*graph)->AddTensor(x).value();
    const TensorId out = (*graph)->AddTensor(y).value();
    ASSERT_TRUE((*graph)
                    ->AddNode({.name = "sum",
                               .op = "ElementWiseAdd",
                               .inputs = {in, in},
                               .outputs = {out}})
                    .ok());
    const Status compiled = (*graph)->Finalize();
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    if (!soc.has_cost_model) continue;
    const auto estimate = ReadEstimate(path_);
    ASSERT_TRUE(estimate.ok()) << estimate.error().message;
    EXPECT_EQ(estimate->soc, soc.name);
    EXPECT_GT(estimate->core_mhz, 1000);
    EXPECT_GT(estimate->us, 1);
    EXPECT_LT(estimate->us, 100);
    EXPECT_EQ(estimate->ddr_read_bytes, 32U * 256 * 2);
    EXPECT_EQ(estimate->ddr_write_bytes, 32U * 256 * 2);
  }
}

}  // namespace
}  // namespace hexllm::htp
